/** Starts a node with a pool of four signers, deploys the contract, and mints a hundred tickets at once. */
import { startFencepost } from "fencepost/testing";
import { createPublicClient, http } from "viem";
import { deploy, inWords, mint } from "./queue.ts";
import { TICKET_ABI } from "./ticket.ts";

const TICKETS = 100;
const stack = await startFencepost({ signers: 5, pools: { minters: [1, 2, 3, 4] } });
const [deployer = "0x", ...minters] = stack.signers;
const address = await deploy(stack.client, deployer, minters);
console.log(`Ticket is deployed at ${address}`);

const fan = "0x00000000000000000000000000000000000000AA";
const ids = Array.from({ length: TICKETS }, (_, index) => BigInt(index + 1));
const began = Date.now();
const sent = await Promise.all(ids.map((id) => mint(stack.client, address, fan, id)));
await Promise.all(sent.map((each) => each.final()));
for (const minter of minters) {
  console.log(`${minter} minted ${sent.filter(({ signer }) => signer === minter).length}`);
}
console.log(`all are final after ${Date.now() - began} ms`);

await Promise.all(ids.map((id) => mint(stack.client, address, fan, id)));
const chain = createPublicClient({ transport: http(stack.rpcUrl) });
const supply = await chain.readContract({ address, abi: TICKET_ABI, functionName: "totalSupply" });
console.log(`asked for once more, there are ${supply} tickets`);

const taken = { to: address, abi: TICKET_ABI, function: "mint", args: [fan, 1n] } as const;
await stack.client.send({ signer: { pool: "minters" }, payload: taken }).catch((error) => console.log(inWords(error)));
await stack.stop();
