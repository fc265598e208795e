import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { TcpProxy } from "./tcp-proxy.ts";
import { waitUntil } from "./wait-until.ts";

/** A server that answers each message with the next of these texts. */
async function serverSaying(...answers: readonly string[]): Promise<number> {
  const left = [...answers];
  const server = createServer((socket) => {
    socket.on("data", () => socket.write(left.shift() ?? ""));
    socket.on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function clientOf(proxy: TcpProxy) {
  const client = connect(proxy.port, "127.0.0.1");
  client.on("error", () => undefined);
  await once(client, "connect");
  onTestFinished(() => void client.destroy());
  return client;
}

it("the TCP proxy drops the response to the next successful COMMIT, but passes on the response to a refused one", async () => {
  const proxy = await TcpProxy.start(await serverSaying("ROLLBACK\0", "COMMIT\0"));
  onTestFinished(() => proxy.close());
  const client = await clientOf(proxy);
  const hit = proxy.atNextCommit("cut-after");
  client.write("COMMIT\0");
  const [refusal] = await once(client, "data");
  expect(String(refusal)).toContain("ROLLBACK");
  client.write("COMMIT\0");
  await hit;
  await once(client, "close");
  expect(client.bytesRead).toBe(refusal.length);
});

it("the TCP proxy drops another client's COMMIT response if the first client disconnected before its own", async () => {
  const proxy = await TcpProxy.start(await serverSaying("", "COMMIT\0"));
  onTestFinished(() => proxy.close());
  const hit = proxy.atNextCommit("cut-after");
  const first = await clientOf(proxy);
  first.write("COMMIT\0");
  first.end();
  await waitUntil(() => proxy.connections === 0, "the first has hung up");
  const second = await clientOf(proxy);
  second.write("COMMIT\0");
  await hit;
  await once(second, "close");
  expect(second.bytesRead).toBe(0);
});
