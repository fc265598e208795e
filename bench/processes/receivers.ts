import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { ReceiverReport } from "./receiver-messages.ts";

/** Receivers of webhooks in one process: one that works, one that never answers, and one whose answers never end. */
let report: ReceiverReport = { outcomes: 0, delaysMs: [] };

const listen = async (listener: RequestListener) => {
  const server = createServer({ keepAliveTimeout: 60_000 }, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
};

/** Time from an outcome's commit to its arrival. */
const fast = await listen((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const { at } = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { at: string };
    report = { outcomes: report.outcomes + 1, delaysMs: report.delaysMs };
    (report.delaysMs as number[]).push(Date.now() - Date.parse(at));
    response.writeHead(204).end();
  });
});
const silent = await listen((request) => void request.resume());
const slow = await listen((request, response) => {
  request.resume();
  response.writeHead(500);
  const drip = setInterval(() => response.write(" "), 100);
  response.on("close", () => clearInterval(drip));
});

process.on("message", () => {
  process.send?.(report);
  report = { outcomes: 0, delaysMs: [] };
});
process.on("disconnect", () => process.exit(0));
process.send?.({ url: JSON.stringify({ fast, silent, slow }) });
