/**
 * A receiver of webhooks in a process of its own, which verifies with the npm package of Standard Webhooks. Each
 * delivery that it takes is a line of a file before it answers: time, id, kind of event, body.
 *
 * Arguments: port, file, secret, number of first requests that get 503, number of next requests that are cut off.
 */
import { openSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { argv, stdout } from "node:process";
import { Webhook } from "standardwebhooks";

const [port, file, secret, refused = "0", cut = "0"] = argv.slice(2);
const verifier = new Webhook(secret);
const taken = openSync(file, "a");
let left = { refused: Number(refused), cut: Number(cut) };

function isGenuine(body, headers) {
  try {
    verifier.verify(body, headers);
    return true;
  } catch {
    return false;
  }
}

function receive(request, response, body) {
  if (left.refused > 0) {
    left = { ...left, refused: left.refused - 1 };
    return response.writeHead(503).end();
  }
  const isCut = left.cut > 0;
  if (isCut) left = { ...left, cut: left.cut - 1 };
  // Every second one is cut off before the delivery is taken, the others after it.
  if (isCut && left.cut % 2 === 0) return request.socket.destroy();
  if (!isGenuine(body, request.headers)) return response.writeHead(401).end();
  const fields = [Date.now(), request.headers["webhook-id"], request.headers["fencepost-event"], body];
  writeSync(taken, `${fields.join("\t")}\n`);
  return isCut ? request.socket.destroy() : response.writeHead(204).end();
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => receive(request, response, Buffer.concat(chunks).toString("utf8")));
});
server.listen(Number(port), "127.0.0.1", () => {
  stdout.write(`${JSON.stringify({ ready: true, url: `http://127.0.0.1:${server.address().port}/outcomes` })}\n`);
});
