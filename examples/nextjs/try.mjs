// @ts-check
/** Starts a node and the app that `next build` made, and is its first caller. */
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { startFencepost } from "fencepost/testing";

const PORT = process.env.PORT ?? "3100";
const stack = await startFencepost({ signers: 1 });
const next = createRequire(import.meta.url).resolve("next/dist/bin/next");
const app = spawn(process.execPath, [next, "start", "--port", PORT], {
  env: { ...process.env, NODE_URL: stack.url, SIGNER: stack.signers[0] },
  stdio: ["ignore", "pipe", "inherit"],
});
for await (const text of app.stdout) if (String(text).includes("Ready")) break;

const url = `http://127.0.0.1:${PORT}/api/payments`;
const payment = { orderId: "order-42", to: "0x00000000000000000000000000000000000000AA", value: "5" };
const headers = { "content-type": "application/json" };
/** @param {object} body */
const post = (body) => fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
const look = async () => (await fetch(`${url}?orderId=order-42`)).json();

console.log("paid        ", (await post(payment)).status);
console.log("other amount", (await post({ ...payment, value: "6" })).status);
let seen = await look();
while (seen.state !== "CONFIRMED") seen = await look();
console.log("looked at   ", seen);
app.kill();
await stack.stop();
