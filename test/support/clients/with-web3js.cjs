/** web3.js as an application uses it: `node with-web3js.cjs URL DIRECTORY FROM TO BYTECODE`, where DIRECTORY has it installed. */
const { createRequire } = require("node:module");

const [url, directory, from, to, bytecode] = process.argv.slice(2);
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
  const web3 = new Web3(url);
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
    }),
  );
}

main().then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  },
);
