import type { FastifyInstance } from "fastify";
import { Health, Readiness, ReadinessQuery } from "../../../contract/calls/cluster.ts";
import { FencepostError } from "../../../domain/errors.ts";
import { refuseLimited } from "../../../domain/keys/principal.ts";
import type { Reference } from "../docs/page.ts";
import { answering, type HttpServerOptions, type RouteContext } from "../exchange/options.ts";
import { queryReader } from "../exchange/query.ts";
import { PAGE_HEADERS } from "./files.ts";

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
    refuseLimited(principal, "metrics name every signer of the node, and this API key is limited to some");
    const { contentType, body } = await options.metrics();
    return reply.header("content-type", contentType).send(body);
  });

  docsRoutes(app, context.version);
}

/** A probe must get an answer it can read in every state of the node. */
async function readinessOf(
  { longPolls }: RouteContext,
  { api, logger }: Pick<HttpServerOptions, "api" | "logger">,
  chainId: number | undefined,
): Promise<Readiness> {
  const asked = await api.readiness(chainId).catch((error: unknown) => {
    if (error instanceof FencepostError && error.code === "UNKNOWN_CHAIN") throw error;
    logger?.error({ err: error }, "readiness could not be determined");
    return { ready: false, database: false, chains: [], draining: false };
  });
  const draining = asked.draining || longPolls.draining;
  return { ready: asked.ready && !draining, database: asked.database, chains: [...asked.chains], draining };
}

/** Loaded and rendered at the first request, because most nodes get none; once, because none of it changes. */
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
