import { STATUS_CODES } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Problem, problemDocument } from "../../../contract/schemas/problem.ts";
import { FencepostError, invalid } from "../../../domain/errors.ts";
import { type Mask, maskOfShapes, maskTexts } from "../../../domain/text/mask.ts";
import { quotaHeaders } from "../admission/rate-headers.ts";
import type { HttpLogger, HttpServerOptions } from "./options.ts";

const PROBLEM_TYPE = "application/problem+json; charset=utf-8";
const HEADER_VALUE = /^[\x20-\x7e]+$/;

/**
 * Converts an error to the response's problem document. Its texts are masked: they may quote foreign texts, or the
 * caller's path and field names.
 */
export function problemOf({ code, message, extras }: FencepostError, mask: Mask): Problem {
  const { path, revert } = extras;
  return {
    ...problemDocument(code, mask(message)),
    ...extras,
    ...(path !== undefined && { path: mask(path) }),
    ...(revert !== undefined && { revert: maskTexts(mask, revert) as typeof revert }),
  };
}

type Audit = Pick<HttpServerOptions, "logger" | "mask" | "onRefused">;

/** Records for the audit the refusal of a request, or of one item of a batch. */
export function noteRefusal(
  onRefused: Audit["onRefused"],
  { principal, method, pattern }: FastifyRequest,
  { code, extras }: FencepostError,
): void {
  const rule = code === "UNAUTHENTICATED" ? "apiKey" : extras.rule;
  if (rule === undefined) return;
  if (code !== "UNAUTHENTICATED" && code !== "FORBIDDEN" && code !== "QUOTA_EXCEEDED") return;
  onRefused?.({ code, rule, key: principal?.name ?? null, method, route: pattern ?? "unmatched" });
}

/**
 * Installs the error handlers. Must run before any route is added, so that no route uses Fastify's own error responses.
 */
export function answerWithProblems(app: FastifyInstance, audit: Audit): void {
  const convert = errorConverter(audit);
  app.setErrorHandler((error, request, reply) => {
    // Remove Fastify's `connection: close`. If the caller is still sending a refused body, closing resets the
    // connection, and the caller loses the response. Without the header, Node.js reads the rest, within the request
    // timeout.
    reply.removeHeader("connection");
    return sendProblem(reply, convert(error, request));
  });
  app.setNotFoundHandler((request, reply) => sendProblem(reply, noSuchRoute(request)));
}

/** Makes a function that converts an error to the one shown to the caller, and records it for the audit. */
export function errorConverter({ logger, onRefused }: Omit<Audit, "mask">) {
  return (error: unknown, request: FastifyRequest) => {
    const known = toFencepostError(error, request, logger);
    noteRefusal(onRefused, request, known);
    return known;
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
  if (error.code === "QUOTA_EXCEEDED") quotaHeaders(reply, error);
  if (error.code === "UNAUTHENTICATED") reply.header("www-authenticate", 'Bearer realm="fencepost"');
  return reply.send(JSON.stringify(problemOf(error, reply.server.mask)));
}

/** Status and body of an error response that is not sent through the router. */
export function problemAnswer(error: FencepostError) {
  return { status: error.status, body: JSON.stringify(problemOf(error, maskOfShapes)) };
}

/**
 * Raw text of an error response: malformed HTTP and refused upgrades never reach the router, so it is written by hand.
 */
export function rawAnswer({ status, body }: ReturnType<typeof problemAnswer>): string {
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    `content-type: ${PROBLEM_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/** Converts any thrown error. An unexpected error is a bug: it is logged here, and hidden from the caller. */
function toFencepostError(error: unknown, request: FastifyRequest, logger: HttpLogger | undefined) {
  if (error instanceof FencepostError) return error;
  const { code } = Object(error) as { code?: unknown };
  const refused = REFUSED.get(code);
  if (refused !== undefined) return invalid(...refused);
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE")
    return new FencepostError("PAYLOAD_TOO_LARGE", "the request body is larger than this route accepts");
  // The caller disconnected before its body was complete. That is no error of this node, so it is not logged.
  if (request.raw.readableAborted && !request.raw.complete)
    return invalid("", "the connection ended before the body was complete");
  const route = request.routeOptions.url ?? null;
  logger?.error({ err: error, method: request.method, route }, "a request failed with an unexpected error");
  return new FencepostError("INTERNAL", "an unexpected error occurred; see the node's log");
}

/** Errors of Fastify itself, by code, and how they are reported to the caller. */
const REFUSED = new Map<unknown, Parameters<typeof invalid>>([
  ["FST_ERR_CTP_INVALID_MEDIA_TYPE", ["content-type", "must be application/json"]],
  // Fastify throws FST_ERR_ROUTE_MISSING_CONTENT_TYPE for methods that require a body, such as QUERY, even if no route
  // matches.
  ["FST_ERR_ROUTE_MISSING_CONTENT_TYPE", ["content-type", "must be application/json"]],
  ["FST_ERR_CTP_INVALID_CONTENT_LENGTH", ["content-length", "is not the length of the body"]],
]);

/**
 * Matches API keys in paths, so that they can be masked even if the node accepts none there: they must not reach a log.
 */
const KEY_IN_PATH = /^(\/rpc\/(?:[^/]*\/)?key\/).*$/i;

function pathOf(request: FastifyRequest) {
  const path = request.url.split("?", 1)[0]?.slice(0, 200) ?? "";
  return path.replace(KEY_IN_PATH, "$1***");
}
