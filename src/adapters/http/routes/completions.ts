import type { FastifyInstance } from "fastify";
import type { CompletionsPage as ApiPage, CompletionsQuery as ApiQuery } from "../../../application/api.ts";
import { CompletionsPage, CompletionsQuery } from "../../../contract/completions.ts";
import type { RouteContext } from "../context.ts";
import { queryReader } from "../query.ts";
import { completionsView } from "../views.ts";

const readQuery = queryReader(CompletionsQuery);

export function completionRoutes(app: FastifyInstance, context: RouteContext): void {
  app.get(
    "/api/v1/tx/completions",
    { schema: { response: { 200: CompletionsPage } } },
    async (request, reply): Promise<CompletionsPage | undefined> => {
      const { after = 0, wait = 0, ...query } = readQuery(request.query);
      const asked: ApiQuery = { after, ...query };
      if (wait === 0) return completionsView(await context.api.completions(asked), context.checksum);
      const page = await context.longPolls.hold(reply.raw, (signal) => {
        return waitForPage(context, { ...asked, waitMs: Math.round(wait * 1000), signal });
      });
      if (!reply.raw.destroyed) {
        return completionsView(page ?? (await context.api.completions(asked)), context.checksum);
      }
      // The caller has hung up: there is no one to answer.
      reply.hijack();
      return undefined;
    },
  );
}

/** Null where the wait was cut short: the caller hung up, or the node stops. A caller still there gets what there is. */
async function waitForPage({ api }: RouteContext, query: ApiQuery): Promise<ApiPage | null> {
  if (query.signal?.aborted) return null;
  try {
    return await api.completions(query);
  } catch (error) {
    if (query.signal?.aborted) return null;
    throw error;
  }
}
