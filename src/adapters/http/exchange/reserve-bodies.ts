/**
 * Reserves memory for a request body, after authentication and before reading: by its Content-Length, or chunk by
 * chunk. The memory is released with the response, because until then the body and its parsed form are in memory.
 */
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest, preParsingHookHandler } from "fastify";
import { type Held, type HeldBytes, heldBytes } from "../admission/held-bytes.ts";
import { noSuchRoute } from "./problems.ts";

const WITHOUT_BODY = new Set(["GET", "HEAD", "OPTIONS"]);
const MIB = 1024 * 1024;
/** Memory budget of other nodes, which forward admitted requests. It is separate, so that callers cannot use it up. */
const PEERS_BYTES = { ofKey: Number.POSITIVE_INFINITY, ofNode: 256 * MIB };
/** Largest body of an urgent route that is read even if the budget is used up. A kill request is smaller than this. */
const URGENT_BYTES = 16 * 1024;

/** Installs the hooks that reserve memory. Must run before any route is added. */
export function reserveBodies(app: FastifyInstance, callers: HeldBytes): void {
  const peers = heldBytes(PEERS_BYTES);
  app.addHook("onRequest", (request, _, done) => {
    // Refuse a request with a body if no route matches: Fastify would read the body without authentication.
    done(request.is404 && lengthOf(request) !== 0 ? noSuchRoute(request) : undefined);
  });
  app.addHook("onRoute", (route) => {
    if ([route.method].flat().every((method) => WITHOUT_BODY.has(method))) return;
    const { peer, urgent, open } = route.config ?? {};
    if (open === true) return;
    const most = route.bodyLimit ?? (app.initialConfig.bodyLimit as number);
    const reserve = reserving(peer === true ? peers : callers, most, urgent === true ? URGENT_BYTES : 0);
    route.preParsing = [reserve, ...[route.preParsing ?? []].flat()];
  });
  app.addHook("onSend", (request, _, payload, done) => {
    request.held?.release();
    request.held = null;
    done(null, payload);
  });
}

/** Makes a hook that reserves memory for a body. Bodies up to `free` bytes need no reservation. */
function reserving(bytes: HeldBytes, most: number, free: number): preParsingHookHandler {
  return (request, _, payload, done) => {
    const length = lengthOf(request);
    // Skip the reservation for a body that is too large by its Content-Length: it is refused without being read.
    if (length === 0 || (length !== null && (length <= free || length > most))) return done();
    const held = bytes(request.principal?.name ?? null);
    request.held = held;
    if (length !== null) return done(held.grow(length));
    growWith(payload as unknown as Readable, held);
    done();
  };
}

/** Content-Length of a request; null if unknown (chunked). */
function lengthOf({ headers }: FastifyRequest) {
  if (headers["transfer-encoding"] !== undefined) return null;
  return Number(headers["content-length"] ?? 0);
}

function growWith(body: Readable, held: Held) {
  const grow = ({ length }: Buffer) => {
    const refusal = held.grow(length);
    if (refusal === null) return;
    body.off("data", grow);
    // Make the body's reader fail with this error. The rest of the body is read and dropped, so that the caller
    // receives the response.
    body.emit("error", refusal);
  };
  body.on("data", grow);
}
