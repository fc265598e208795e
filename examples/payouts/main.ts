/** Starts a PostgreSQL, a chain and the shop; kills the shop in the middle of its work; looks at what was paid. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { startFencepost } from "fencepost/testing";
import { Client } from "pg";

const ORDERS = 40;
const stack = await startFencepost({ signers: 1 });
const [account] = stack.strangers;
if (account === undefined) throw new Error("the stack has no account for the shop");

function startShop() {
  const env = {
    DATABASE_URL: stack.databaseUrl,
    RPC_URL: stack.rpcUrl,
    SIGNER: account?.address,
    SIGNER_KEY: account?.privateKey,
    ORDERS: String(ORDERS),
  };
  return fork(new URL("serve.js", import.meta.url), { env, stdio: ["ignore", "pipe", "inherit", "ipc"] });
}

const first = startShop();
for await (const line of createInterface({ input: first.stdout as Readable })) {
  if (line === "placed 25") first.kill("SIGKILL");
}
console.log("the shop was killed at its 25th order");

const [code] = await once(startShop(), "exit");
if (code !== 0) throw new Error(`the shop ended with ${code}`);

const database = new Client(stack.databaseUrl);
await database.connect();
const { rows } = await database.query<{ recipient: string; wei: string }>(
  "SELECT recipient, wei FROM orders WHERE state = 'PAID'",
);
await database.end();
let exact = 0;
for (const { recipient, wei } of rows) {
  const balance = BigInt(String(await stack.chain.rpc("eth_getBalance", [recipient, "latest"])));
  if (balance === BigInt(wei)) exact++;
}
console.log(`${rows.length} of ${ORDERS} orders are PAID, ${exact} of them exactly once on the chain`);
await stack.stop();
