import type { FastifyInstance, FastifyRequest } from "fastify";
import type { HttpServerOptions } from "./options.ts";

type Enter = (request: FastifyRequest, reply: unknown, done: () => void) => void;

/** Creates belong to the trace that their header names, by whichever route they come. Before the routes are made. */
export function traceRoutes(app: FastifyInstance, within: HttpServerOptions["within"]): void {
  if (within === undefined) return;
  app.addHook("onRoute", (route) => {
    if (route.config?.takesIn !== true && !route.url.startsWith("/rpc")) return;
    // Right before the handler: nothing that waits for the door or the body in between can leave the context.
    const enter: Enter = (request, _, done) => within(request.headers.traceparent, done);
    route.preHandler = [enter, ...[route.preHandler ?? []].flat()];
  });
}
