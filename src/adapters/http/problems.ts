import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Problem, problemDocument } from "../../contract/problem.ts";
import { FencepostError, invalid } from "../../domain/errors.ts";
import { type Mask, maskOfShapes, maskTexts } from "../../domain/mask.ts";
import type { HttpLogger, HttpServerOptions } from "./options.ts";
import { tellQuota } from "./rate-headers.ts";

declare module "fastify" {
  interface FastifyInstance {
    mask: Mask;
  }
}

const PROBLEM_TYPE = "application/problem+json; charset=utf-8";
const HEADER_VALUE = /^[\x20-\x7e]+$/;

/** Words of others may be in it, and a caller's own: the path of a request, the name of a field. */
export function problemOf({ code, message, extras }: FencepostError, mask: Mask): Problem {
  const { path, revert } = extras;
  return {
    ...problemDocument(code, mask(message)),
    ...extras,
    ...(path === undefined ? {} : { path: mask(path) }),
    ...(revert === undefined ? {} : { revert: maskTexts(mask, revert) as typeof revert }),
  };
}

type Audit = Pick<HttpServerOptions, "logger" | "mask" | "onRefused">;

/** Of one answer, or of one item of a batch. */
export function noteRefusal(
  onRefused: NonNullable<Audit["onRefused"]>,
  { principal, method, pattern }: FastifyRequest,
  { code, extras }: FencepostError,
): void {
  const rule = code === "UNAUTHENTICATED" ? "apiKey" : extras.rule;
  if (rule === undefined) return;
  if (code !== "UNAUTHENTICATED" && code !== "FORBIDDEN" && code !== "QUOTA_EXCEEDED") return;
  onRefused({ code, rule, key: principal?.name ?? null, method, route: pattern ?? "unmatched" });
}

/** Must run before any route is added, so that no route falls back to Fastify's own error answers. */
export function answerWithProblems(app: FastifyInstance, audit: Audit): void {
  const tell = telling(audit);
  app.decorate("mask", audit.mask);
  app.setErrorHandler((error, request, reply) => {
    // Fastify hangs up on a caller that still writes a body it refused; the connection is reset before the answer is read.
    // Without that header Node reads the rest away, for as long as any request may take to arrive.
    reply.removeHeader("connection");
    return sendProblem(reply, tell(error, request));
  });
  app.setNotFoundHandler((request, reply) => sendProblem(reply, noSuchRoute(request)));
}

/** What a request failed with, as its caller is told; noted for the audit. */
export function telling({ logger, onRefused }: Omit<Audit, "mask">) {
  return (error: unknown, request: FastifyRequest): FencepostError => {
    const told = toFencepostError(error, request, logger);
    if (onRefused !== undefined) noteRefusal(onRefused, request, told);
    return told;
  };
}

export function noSuchRoute(request: FastifyRequest): FencepostError {
  return new FencepostError("NOT_FOUND", `there is no route ${request.method} ${pathOf(request)}`);
}

export function sendProblem(reply: FastifyReply, error: FencepostError): FastifyReply {
  const { retryAfterSeconds, ownerUrl } = error.extras;
  reply.code(error.status).header("content-type", PROBLEM_TYPE).header("cache-control", "no-store");
  if (retryAfterSeconds !== undefined) reply.header("retry-after", String(Math.ceil(retryAfterSeconds)));
  if (ownerUrl && HEADER_VALUE.test(ownerUrl)) reply.header("fencepost-owner", ownerUrl);
  if (error.code === "QUOTA_EXCEEDED") tellQuota(reply, error);
  if (error.code === "UNAUTHENTICATED") reply.header("www-authenticate", 'Bearer realm="fencepost"');
  return reply.send(JSON.stringify(problemOf(error, reply.server.mask)));
}

/** What HTTP itself could not read never reaches the router; the bytes are written by hand. */
export function rawProblem(error: FencepostError): string {
  const body = JSON.stringify(problemOf(error, maskOfShapes));
  const head = [
    `HTTP/1.1 ${error.status} Bad Request`,
    `content-type: ${PROBLEM_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/** An error that is neither a FencepostError nor the caller's fault is ours: logged here, and not shown to the caller. */
function toFencepostError(error: unknown, request: FastifyRequest, logger: HttpLogger | undefined): FencepostError {
  if (error instanceof FencepostError) return error;
  const refused = REFUSED.get((error as { readonly code?: unknown } | null)?.code);
  if (refused !== undefined) return refused();
  // It hung up in the middle of its body: no caller is left to answer, and nothing of ours went wrong.
  if (request.raw.readableAborted && !request.raw.complete) return invalid("", "ended before it was complete");
  const route = request.routeOptions.url ?? null;
  logger?.error({ err: error, method: request.method, route }, "a request failed for an unforeseen reason");
  return new FencepostError("INTERNAL", "something unforeseen happened; the node's log says what");
}

/** What Fastify refuses by itself, by its own code. */
const REFUSED = new Map<unknown, () => FencepostError>([
  [
    "FST_ERR_CTP_BODY_TOO_LARGE",
    () => new FencepostError("PAYLOAD_TOO_LARGE", "the body is larger than this route takes"),
  ],
  ["FST_ERR_CTP_INVALID_MEDIA_TYPE", () => invalid("content-type", "must be application/json")],
  // Of methods that must bring a body, such as QUERY, also where there is no such route.
  ["FST_ERR_ROUTE_MISSING_CONTENT_TYPE", () => invalid("content-type", "must be application/json")],
  ["FST_ERR_CTP_INVALID_CONTENT_LENGTH", () => invalid("content-length", "is not the length of the body")],
]);

/** Also where no key is taken from a path: who sent one there should not find it in a log. */
const KEY_IN_PATH = /^(\/rpc\/(?:[^/]*\/)?key\/).*$/i;

function pathOf(request: FastifyRequest): string {
  const path = request.url.split("?", 1)[0]?.slice(0, 200) ?? "";
  return path.replace(KEY_IN_PATH, "$1***");
}
