import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { FencepostError, invalid } from "../../domain/errors.ts";
import type { CheckBody } from "./options.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Size of the body as it arrived. */
    bodyBytes: number;
    /** Of a request from another node: throws where this is not the body that was signed. */
    checkBody: CheckBody | null;
  }
}

/** Deep enough for any ABI; shallow enough that nothing behind the door can be made to recurse without end. */
const DEPTH_LIMIT = 64;
/** Between nodes a request is wrapped once more, and one from a process that embeds a node passed no door before. */
const PEER_DEPTH_LIMIT = 1_000;
const PATH_LENGTH_LIMIT = 200;

/** JSON is the only content type. Where a name occurs twice in one object, the last one counts, as in ECMAScript. */
export function acceptOnlyJson(app: FastifyInstance): void {
  app.decorateRequest("bodyBytes", 0);
  app.decorateRequest("checkBody", null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    try {
      done(null, parse(request, body as Buffer));
    } catch (error) {
      done(error as Error, undefined);
    }
  });
}

export function asObject(value: unknown, path = ""): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw invalid(path, "must be a JSON object");
}

export function tooLarge(limitBytes: number): FencepostError {
  return new FencepostError("PAYLOAD_TOO_LARGE", `at most ${limitBytes / 1024} KiB are taken`);
}

function parse(request: FastifyRequest, body: Buffer): unknown {
  request.bodyBytes = body.length;
  request.checkBody?.(body);
  refuseEncoded(request.headers["content-encoding"]);
  // Decoding would replace stray bytes by U+FFFD, and two different request ids could become one.
  if (!isUtf8(body)) throw invalid("", "is not UTF-8");
  const value = parseJson(body.toString("utf8"));
  const offence = findOffence(value, 0, DEPTH_LIMIT) && findOffence(value, 0, depthLimitOf(request));
  if (offence !== null) throw invalid(offence.path.join(".").slice(0, PATH_LENGTH_LIMIT), offence.detail);
  return value;
}

/** Compressed bytes are no JSON either, but who sent them would look for the mistake in what they compressed. */
function refuseEncoded(encoding: string | undefined): void {
  if (encoding === undefined || encoding === "identity") return;
  throw invalid("content-encoding", "is not supported: send the body uncompressed");
}

/** Asked for where something is wrong already: looking at the route costs more than looking through a usual body. */
function depthLimitOf(request: FastifyRequest): number {
  return request.routeOptions.config.peer === true ? PEER_DEPTH_LIMIT : DEPTH_LIMIT;
}

function parseJson(text: string): unknown {
  if (text === "") throw invalid("", "is empty");
  try {
    return JSON.parse(text);
  } catch {
    throw invalid("", "is not valid JSON");
  }
}

interface Offence {
  readonly path: readonly string[];
  readonly detail: string;
}

/** `__proto__` is an own member after JSON.parse, and a prototype after the first careless copy: it stays outside. */
function findOffence(value: unknown, depth: number, limit: number): Offence | null {
  if (typeof value !== "object" || value === null) return null;
  if (depth === limit) return { path: [], detail: `is nested deeper than ${limit} levels` };
  if (Array.isArray(value)) return findOffenceInArray(value, depth, limit);
  for (const name of Object.keys(value)) {
    if (name === "__proto__") return { path: [name], detail: "is not a field" };
    const inner = findOffence((value as Record<string, unknown>)[name], depth + 1, limit);
    if (inner !== null) return { ...inner, path: [name, ...inner.path] };
  }
  return null;
}

function findOffenceInArray(values: readonly unknown[], depth: number, limit: number): Offence | null {
  for (let index = 0; index < values.length; index++) {
    const inner = findOffence(values[index], depth + 1, limit);
    if (inner !== null) return { ...inner, path: [String(index), ...inner.path] };
  }
  return null;
}
