/** Starts a node and the service, and is its first caller. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { startFencepost } from "fencepost/testing";
import { createService } from "./service.ts";

const stack = await startFencepost({ signers: 1 });
const server = createService(stack.client, stack.signers[0]).listen(0);
await once(server, "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/payments/order-42`;

async function ask(method: string, body?: object): Promise<Record<string, unknown>> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
  return { status: answer.status, ...((await answer.json()) as object) };
}

const payment = { to: "0x00000000000000000000000000000000000000AA", value: "5" };
console.log("paid        ", await ask("PUT", payment));
console.log("paid again  ", await ask("PUT", payment));
console.log("other amount", await ask("PUT", { ...payment, value: "6" }));
let seen = await ask("GET");
while (seen.state !== "CONFIRMED") seen = await ask("GET");
console.log("looked at   ", seen);
server.close();
await stack.stop();
