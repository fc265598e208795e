/**
 * web3.js as an application uses it: `node with-web3js.cjs URL CHAIN DIRECTORY FROM TO BYTECODE`, where DIRECTORY has it
 * installed. URL is the node's; CHAIN is asked for nothing but to pause its blocks.
 */
const { createRequire } = require("node:module");

const [url, chainUrl, directory, from, to, bytecode] = process.argv.slice(2);
const { Web3 } = createRequire(`${directory}/package.json`)("web3");

const ABI = [
  { type: "constructor", inputs: [{ name: "initial", type: "uint256" }] },
  {
    type: "function",
    name: "raise",
    stateMutability: "nonpayable",
    inputs: [{ name: "value", type: "uint256" }],
    outputs: [],
  },
  { type: "function", name: "current", stateMutability: "view", inputs: [], outputs: [{ name: "", type: "uint256" }] },
];

async function main() {
  const web3 = new Web3(`${url}/rpc`);
  web3.eth.transactionPollingInterval = 500;
  // It gives up after so many blocks, and those of the test come twenty a second.
  web3.eth.transactionBlockTimeout = 100_000;
  const accounts = await web3.eth.getAccounts();
  const transfer = await web3.eth.sendTransaction({ from, to, value: "5" });
  const contract = await new web3.eth.Contract(ABI).deploy({ data: bytecode, arguments: [7] }).send({ from });
  await contract.methods.raise(9).send({ from });
  const reverted = await contract.methods
    .raise(1)
    .send({ from })
    .then(
      () => "sent",
      (error) => String(error.cause?.message ?? error.innerError?.message ?? error.message),
    );
  const many = await Promise.all(Array.from({ length: 200 }, () => web3.eth.sendTransaction({ from, to, value: "1" })));
  const own = await web3.requestManager.send({
    method: "fencepost_getTransaction",
    params: [transfer.transactionHash],
  });
  process.stdout.write(
    JSON.stringify({
      accounts: accounts.length,
      status: Number(transfer.status),
      current: Number(await contract.methods.current().call()),
      reverted,
      hashes: new Set(many.map(({ transactionHash }) => transactionHash)).size,
      succeeded: many.filter(({ status }) => Number(status) === 1).length,
      own: own.txHash === transfer.transactionHash,
      replaced: await replaced(web3),
    }),
  );
}

/** Priced again by an operator while no block takes it: it is mined under another hash. */
async function replaced(web3) {
  const chain = new Web3(chainUrl).requestManager;
  const own = (hash) => web3.requestManager.send({ method: "fencepost_getTransaction", params: [hash] });
  await chain.send({ method: "evm_setIntervalMining", params: [0] });
  const old = await new Promise((resolve, reject) =>
    web3.eth.sendTransaction({ from, to, value: "3" }).on("transactionHash", resolve).on("error", reject),
  );
  const { txId } = await own(old);
  const order = { method: "POST", headers: { "content-type": "application/json" }, body: '{"reason":"dearer"}' };
  const ordered = await fetch(`${url}/api/v1/tx/${txId}/reprice`, order);
  let found = await own(old);
  while (found.attempts.length < 2) found = await own(old);
  const pending = await web3.eth.getTransaction(old);
  await chain.send({ method: "evm_setIntervalMining", params: [50] });
  while (found.receipt === null) found = await own(old);
  const receipt = await web3.eth.getTransactionReceipt(found.txHash);
  return {
    ordered: ordered.status,
    pending: pending.hash === old,
    another: found.txHash !== old,
    status: Number(receipt.status),
  };
}

main().then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  },
);
