import type { FastifyInstance, FastifyRequest } from "fastify";
import type { HttpServerOptions } from "./options.ts";

type Enter = (request: FastifyRequest, reply: unknown, done: () => void) => void;

/**
 * Runs creates within the trace of their `traceparent` header, on every route. Must run before the routes are added.
 */
export function traceRoutes(app: FastifyInstance, within: HttpServerOptions["within"]): void {
  if (within === undefined) return;
  app.addHook("onRoute", (route) => {
    if (route.config?.takesIn !== true && !route.url.startsWith("/rpc")) return;
    // Added right before the handler, so that no wait for admission or body loses the context.
    const enter: Enter = (request, _, done) => within(request.headers.traceparent, done);
    route.preHandler = [enter, ...[route.preHandler ?? []].flat()];
  });
}
