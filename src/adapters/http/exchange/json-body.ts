import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { FencepostError, invalid } from "../../../domain/errors.ts";

/** Largest depth of a JSON body. Enough for any ABI, and a bound on the recursion of all later code. */
const DEPTH_LIMIT = 64;
/**
 * Largest JSON depth between nodes: they wrap a request once more, and a request from an embedded node has passed no
 * limit before.
 */
const PEER_DEPTH_LIMIT = 1_000;
const PATH_LENGTH_LIMIT = 200;

/** Accepts JSON bodies only. If a name occurs twice in an object, the last one counts, as in ECMAScript. */
export function acceptOnlyJson(app: FastifyInstance): void {
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
  return new FencepostError("PAYLOAD_TOO_LARGE", `the request or batch item is larger than ${limitBytes / 1024} KiB`);
}

function parse(request: FastifyRequest, body: Buffer): unknown {
  request.bodyBytes = body.length;
  request.checkBody?.(body);
  refuseEncoded(request.headers["content-encoding"]);
  // Refuse invalid UTF-8: decoding would replace the bytes by U+FFFD, which could make two different request ids equal.
  if (!isUtf8(body)) throw invalid("", "is not UTF-8");
  const value = parseJson(body.toString("utf8"));
  const offence = findOffence(value, 0, DEPTH_LIMIT) && findOffence(value, 0, depthLimitOf(request));
  if (offence !== null) throw invalid(offence.path.join(".").slice(0, PATH_LENGTH_LIMIT), offence.detail);
  return value;
}

/** Refuses compressed bodies with a specific error: "is not valid JSON" would mislead the caller. */
function refuseEncoded(encoding: string | undefined) {
  if (encoding === undefined || encoding === "identity") return;
  throw invalid("content-encoding", "is not supported: send the body uncompressed");
}

/**
 * Depth limit of a request's route. Read only if the check by the usual limit fails, because looking up the route costs
 * more than checking a usual body.
 */
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

/**
 * Finds forbidden content of a JSON body. `__proto__` is refused: JSON.parse makes it an own member, and a careless
 * copy makes it the prototype.
 */
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

export const IDEMPOTENCY_KEY = "idempotency-key";
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/** Reads the caller's idempotency key, if any: requests with the same key are the same request. */
export function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers[IDEMPOTENCY_KEY];
  if (key === undefined) return undefined;
  if (typeof key !== "string" || !PRINTABLE_ASCII.test(key)) throw invalid(IDEMPOTENCY_KEY, "must be printable ASCII");
  return key;
}
