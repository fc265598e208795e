import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { codeOf, messageOf } from "../../../../domain/text/thrown.ts";
import { LOOPBACK, portOf, portTaken } from "../loopback-port.ts";
import { type Answer, fault, fieldOf, type Handle, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR } from "./json-rpc.ts";

export type RpcServer = Awaited<ReturnType<typeof serveRpc>>;

const BODY_LIMIT_BYTES = 10_000_000;
const BATCH_LIMIT = 1_000;

/** Serves JSON-RPC over HTTP on the loopback address, single requests and batches; port 0 uses a free port. */
export async function serveRpc(handle: Handle, port: number) {
  const server = createServer((request, response) => {
    // Destroy the response: the client disconnected before it was sent.
    respond(handle, request, response).catch(() => response.destroy());
  });
  server.listen(port, LOOPBACK);
  await once(server, "listening").catch((error: unknown) => {
    throw codeOf(error) === "EADDRINUSE" ? portTaken(port) : error;
  });
  // A failed connection does not stop the chain.
  server.on("error", () => undefined);
  const close = () =>
    new Promise<void>((closed) => {
      server.close(() => closed());
      server.closeAllConnections();
    });
  return { port: portOf(server), close };
}

async function respond(handle: Handle, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== "POST") return void response.writeHead(405, { allow: "POST" }).end();
  const body = await readBody(request);
  const reply = body === null ? refusal("request too large") : await answerBody(handle, body);
  if (reply === null) return void response.writeHead(204).end();
  if (body === null) response.setHeader("connection", "close");
  const text = JSON.stringify(reply);
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
  response.writeHead(body === null ? 413 : 200, headers).end(text);
}

/**
 * Reads the body of a request; null if it is too long. The rest is read and dropped, so that the client reads the
 * response.
 */
async function readBody(request: IncomingMessage) {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= BODY_LIMIT_BYTES) chunks.push(chunk);
  }
  return size > BODY_LIMIT_BYTES ? null : Buffer.concat(chunks).toString("utf8");
}

/** The response to a request body; null if the body has only notifications. */
async function answerBody(handle: Handle, body: string): Promise<unknown> {
  let request: unknown;
  try {
    request = JSON.parse(body);
  } catch {
    return envelope(null, fault(PARSE_ERROR, "parse error"));
  }
  return Array.isArray(request) ? answerBatch(handle, request) : answerOne(handle, request);
}

/** Runs the items of a batch in sequence: later ones may depend on earlier ones. */
async function answerBatch(handle: Handle, batch: readonly unknown[]): Promise<unknown> {
  if (batch.length === 0) return refusal("empty batch");
  if (batch.length > BATCH_LIMIT) return refusal(`batch too large: at most ${BATCH_LIMIT} requests`);
  const replies: unknown[] = [];
  for (const request of batch) {
    const reply = await answerOne(handle, request);
    if (reply !== null) replies.push(reply);
  }
  return replies.length === 0 ? null : replies;
}

async function answerOne(handle: Handle, request: unknown): Promise<unknown> {
  const method = fieldOf(request, "method");
  if (typeof method !== "string") return refusal("invalid request");
  const answer = await handle(method, fieldOf(request, "params") ?? []).catch((error: unknown) =>
    fault(INTERNAL_ERROR, messageOf(error)),
  );
  const id = fieldOf(request, "id");
  // A request without an id is a notification: it is executed and gets no response. If the id is neither a string nor a
  // number, the response has a null id: an object could be nested too deeply to serialise.
  if (id === undefined) return null;
  return envelope(typeof id === "string" || typeof id === "number" ? id : null, answer);
}

function refusal(message: string): unknown {
  return envelope(null, fault(INVALID_REQUEST, message));
}

function envelope(id: unknown, answer: Answer): unknown {
  return { jsonrpc: "2.0", id, ...answer };
}
