import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import { type Call, type Location, methodOf } from "../../../contract/calls/call.ts";
import { GROUPS } from "../../../contract/calls/index.ts";
import { defined } from "../../../domain/defined.ts";
import { callReader, type ReadCall } from "../exchange/declared-call.ts";
import { idempotencyKeyOf } from "../exchange/json-body.ts";
import { answering, type RouteContext } from "../exchange/options.ts";
import { present } from "../exchange/present-answer.ts";

/** Adds the route of every declared call that has no hand-written route. */
export function declaredRoutes(app: FastifyInstance, context: RouteContext): void {
  for (const call of GROUPS.flatMap(([, calls]) => Object.values<Call>(calls))) {
    if (methodOf(call) !== undefined) declaredRoute(app, context, call);
  }
}

function declaredRoute(app: FastifyInstance, context: RouteContext, call: Call) {
  const { checksum, clock } = context;
  const [method = "", path = ""] = call.at.split(" ");
  const schemas = Object.entries(call.answers).map(([status, { schema }]) => [Number(status), schema]);
  const read = callReader(call);
  app.route({
    method: method.toUpperCase() as HTTPMethods,
    url: path.replace(/\{(\w+)\}/g, ":$1"),
    ...defined({ bodyLimit: call.bodyBytes }),
    config: defined({ metered: call.metered, urgent: call.urgent }),
    ...answering(Object.fromEntries(schemas)),
    handler: async (request, reply) => {
      const { query, body, principal } = request;
      const params = request.params as Readonly<Record<string, string>>;
      const actor = `operator:${principal.name ?? "anonymous"}`;
      const idempotencyKey = call.headers && idempotencyKeyOf(request);
      const asked = read({ params, query, body, actor, ...defined({ idempotencyKey }) });
      const result = await held(context, request, reply, asked);
      if (result === undefined) return undefined;
      const status = statusOf(call, result);
      const { schema = {}, location } = call.answers[status] ?? {};
      const answer = present(schema, result, { checksum, now: clock.now() });
      reply.code(status);
      if (location !== undefined) reply.header("location", filled(location, answer));
      if (call.noStore === true) reply.header("cache-control", "no-store");
      return answer;
    },
  });
}

/**
 * HTTP status of a successful response. If the API declares two statuses for a call, the higher one is used if
 * something was created, waits for approval, or is not durable yet.
 */
function statusOf({ answers }: Call, result: unknown) {
  const statuses = Object.keys(answers).map(Number);
  const {
    outcome,
    state,
    durable = true,
  } = Object(result) as Readonly<Record<"outcome" | "state", string | undefined>> & {
    readonly durable?: boolean;
  };
  return outcome === "created" || state === "AWAITING_APPROVAL" || !durable
    ? Math.max(...statuses)
    : Math.min(...statuses);
}

function filled({ path }: Location, answer: unknown) {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => String((answer as Record<string, unknown>)[name]));
}

/**
 * Performs a call whose response may be delayed (long poll). If the node drains during the wait, the current result is
 * returned. If the caller has disconnected, there is no response (undefined).
 */
async function held(
  { longPolls }: RouteContext,
  { api }: FastifyRequest,
  reply: FastifyReply,
  { waitMs, perform }: ReadCall,
) {
  if (waitMs === 0) return perform(api);
  const result = await longPolls.hold(reply.raw, async (signal) => {
    if (signal.aborted) return undefined;
    return perform(api, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  });
  if (!reply.raw.destroyed) return result ?? perform(api);
  reply.hijack();
  return undefined;
}
