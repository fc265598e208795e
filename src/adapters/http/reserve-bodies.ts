/**
 * A body is reserved after its caller is known and before a byte of it is read: by its announced length, or chunk by chunk
 * where it has none. It is given back with the answer: until then the body, and what was made of it, is in memory.
 */
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest, preParsingHookHandler } from "fastify";
import { type Held, HeldBytes } from "./held-bytes.ts";
import { noSuchRoute } from "./problems.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Of its body; null: it has none, or it is not read. */
    held: Held | null;
  }
}

const WITHOUT_BODY = new Set(["GET", "HEAD", "OPTIONS"]);
const MIB = 1024 * 1024;
/** Of other nodes, which forward what their callers were let in with: callers of this one do not crowd them out. */
const PEERS_BYTES = { ofKey: Number.POSITIVE_INFINITY, ofNode: 256 * MIB };
/** An order to stop is this small, and is read whatever else is held. */
const URGENT_BYTES = 16 * 1024;

/** Before any route is added. */
export function reserveBodies(app: FastifyInstance, callers: HeldBytes): void {
  const peers = new HeldBytes(PEERS_BYTES);
  app.decorateRequest("held", null);
  app.addHook("onRequest", (request, _, done) => {
    // Fastify would read the body of what it has no route for, and for whom nobody has asked.
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

/** `free`: bodies up to this length cost nothing. */
function reserving(bytes: HeldBytes, most: number, free: number): preParsingHookHandler {
  return (request, _, payload, done) => {
    const length = lengthOf(request);
    // Refuse a body by its Content-Length if it is larger than its route takes: it is not read.
    if (length === 0 || (length !== null && (length <= free || length > most))) return done();
    const held = bytes.by(request.principal?.name ?? null);
    request.held = held;
    try {
      if (length === null) growWith(payload as unknown as Readable, held);
      else held.grow(length);
      done();
    } catch (error) {
      done(error as Error);
    }
  };
}

/** Null: it is not announced. */
function lengthOf({ headers }: FastifyRequest): number | null {
  if (headers["transfer-encoding"] !== undefined) return null;
  return Number(headers["content-length"] ?? 0);
}

function growWith(body: Readable, held: Held): void {
  const grow = (chunk: Buffer): void => {
    try {
      held.grow(chunk.length);
    } catch (error) {
      body.off("data", grow);
      // Whoever reads the body ends with this error; the rest of it is read away, so that the caller gets its answer.
      body.emit("error", error);
    }
  };
  body.on("data", grow);
}
