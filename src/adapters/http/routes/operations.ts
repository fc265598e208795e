import { createHash } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { Health, Readiness, ReadinessQuery } from "../../../contract/calls/cluster.ts";
import { FencepostError } from "../../../domain/errors.ts";
import { refuseLimited } from "../../../domain/keys/principal.ts";
import type { Reference } from "../docs/page.ts";
import { accepts } from "../exchange/accept.ts";
import { rememberedFor } from "../exchange/auth.ts";
import { answering, type HttpServerOptions, type RouteContext, type StaticFile } from "../exchange/options.ts";
import { noSuchRoute } from "../exchange/problems.ts";
import { queryReader } from "../exchange/query.ts";

const OPEN = { open: true } as const;

export function operationRoutes(
  app: FastifyInstance,
  context: RouteContext,
  options: Pick<HttpServerOptions, "api" | "metrics" | "logger">,
): void {
  app.get("/healthz", { config: OPEN, ...answering({ 200: Health }) }, async () => ({
    status: "ok",
    version: context.version,
  }));

  const readQuery = queryReader(ReadinessQuery);
  const ready = answering({ 200: Readiness, 503: Readiness });
  app.get("/readyz", { config: OPEN, ...ready }, async ({ query }, reply) => {
    const { chain } = readQuery(query);
    const readiness = await readinessOf(context, options, chain);
    reply.code(readiness.ready ? 200 : 503).header("cache-control", "no-store");
    return readiness;
  });

  app.get("/metrics", { config: { operators: true } }, async ({ principal }, reply) => {
    refuseLimited(principal, "metrics show all signers and chains, but this API key is limited to some of them");
    const { contentType, body } = await options.metrics();
    return reply.header("content-type", contentType).send(body);
  });

  docsRoutes(app, context.version);
}

/**
 * State of the node for readiness probes. A probe must get a readable response in every state, so failures are reported
 * as not ready.
 */
async function readinessOf(
  { longPolls }: RouteContext,
  { api, logger }: Pick<HttpServerOptions, "api" | "logger">,
  chainId: number | undefined,
) {
  const asked = await api.readiness(chainId).catch((error: unknown) => {
    if (error instanceof FencepostError && error.code === "UNKNOWN_CHAIN") throw error;
    logger?.error({ err: error }, "readiness could not be determined");
    return { ready: false, database: false, chains: [], draining: false };
  });
  const draining = asked.draining || longPolls.draining;
  return { ...asked, ready: asked.ready && !draining, draining };
}

/**
 * Routes of the API reference. It is loaded and rendered at the first request, because most nodes get none, and only
 * once, because it never changes.
 */
function docsRoutes(app: FastifyInstance, version: string) {
  let written: Promise<Reference> | null = null;
  const serve = (path: string, part: keyof Reference, headers: Readonly<Record<string, string>>) => {
    app.get(path, { config: OPEN }, async (_, reply) => {
      written ??= import("../docs/page.ts").then(({ writeReference }) => writeReference(version));
      return reply.headers(headers).send((await written)[part]);
    });
  };
  serve("/openapi.json", "openApi", { "content-type": "application/json; charset=utf-8" });
  serve("/docs", "page", { ...PAGE_HEADERS, "content-type": "text/html; charset=utf-8" });
  serve("/docs/style.css", "style", { ...PAGE_HEADERS, "content-type": "text/css; charset=utf-8" });
}

/**
 * Content security policy without inline code or foreign sources, so that text chosen by a caller can never run as
 * script on these pages.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export const PAGE_HEADERS = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-cache",
} as const;

/**
 * Serves static files by exact path. Directories are never listed or walked, so no path can escape them. Each directory
 * has one route: one for each file would be a quarter of the time in which all routes are registered.
 */
export function fileRoutes(app: FastifyInstance, files: ReadonlyMap<string, StaticFile>): void {
  const digestOf = rememberedFor((file: StaticFile) =>
    createHash("sha256").update(file.body).digest("base64url").slice(0, 22),
  );
  for (const url of new Set([...files.keys()].map((path) => path.replace(/(?<=.\/)[^/]+$/, ":file")))) {
    app.get(url, { config: { open: true, operators: true } }, (request, reply) => {
      const { file = "" } = request.params as { file?: string };
      const found = files.get(url.replace(":file", file));
      if (found === undefined) throw noSuchRoute(request);
      const { contentType, body, gzip } = found;
      const digest = digestOf(found);
      const packed = accepts(request.headers["accept-encoding"] ?? "", ["gzip", "*"]) ? gzip : undefined;
      // Give each encoding its own tag: a cache must not answer with bytes that the client cannot read (RFC 9110, 8.8.3).
      const etag = packed === undefined ? `"${digest}"` : `"${digest}-gzip"`;
      reply.headers(PAGE_HEADERS).header("etag", etag);
      if (gzip !== undefined) reply.header("vary", "accept-encoding");
      if (request.headers["if-none-match"] === etag) return reply.code(304).send();
      if (packed !== undefined) reply.header("content-encoding", "gzip");
      return reply.type(contentType).send(packed ?? body);
    });
  }
}
