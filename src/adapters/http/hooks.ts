import type { FastifyInstance, FastifyRequest, RouteOptions } from "fastify";
import { OPEN } from "../../application/admittance.ts";
import { unavailable } from "../../domain/errors.ts";
import type { Arrivals } from "./arrivals.ts";
import { ANONYMOUS, authenticator } from "./auth.ts";
import { Door, type DoorOptions } from "./door.ts";
import type { LongPolls } from "./long-polls.ts";
import type { HttpServerOptions } from "./options.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Of the API key that was shown: who asks, for the audit. */
    keyName: string;
    /** Of its route; null where none matched. */
    pattern: string | null;
    arrivedMs: number;
  }
}

type OnRequest = (request: FastifyRequest, reply: unknown, done: (error?: Error) => void) => void;

/** Around every request: who asks, and how it was answered. */
export function addHooks(
  app: FastifyInstance,
  options: HttpServerOptions,
  { longPolls, arrivals }: { readonly longPolls: LongPolls; readonly arrivals: Arrivals },
): void {
  const { clock, onResponse } = options;
  const authenticate = authenticator(options.apiKeys);
  const doors = options.door === undefined ? null : openDoors({ ...options.door, clock, arrivals });
  app.decorateRequest("keyName", ANONYMOUS);
  app.decorateRequest("pattern", null);
  app.decorateRequest("arrivedMs", 0);
  app.addHook("onRequest", (request, _, done) => {
    request.arrivedMs = clock.monotonicMs();
    done();
  });
  app.addHook("onRoute", (route) => {
    const { url } = route;
    const takesIn = route.config?.takesIn === true;
    const isPeer = route.config?.peer === true;
    const asksForKey = route.config?.open !== true && !isPeer;
    first(route, (request, _, done) => {
      request.pattern = url;
      if (asksForKey) request.keyName = authenticate(request.headers.authorization);
      if (doors === null || !asksForKey) return done();
      (takesIn ? doors.creating : doors.others).ask({
        arrivedMs: request.arrivedMs,
        isGone: () => request.raw.destroyed,
        enter: done,
      });
    });
    // Behind the look at who asks: strangers take no place at the door.
    if (isPeer && doors !== null) last(route, waitAsPeer(doors.others));
  });
  // As it is sent, not when the last byte has left: waiting for that costs a create a twentieth of its time.
  app.addHook("onSend", (request, reply, payload, done) => {
    // A draining node is leaving: clients that keep connections should open their next one elsewhere.
    if (longPolls.draining) reply.header("connection", "close");
    onResponse?.({
      method: request.method,
      route: request.pattern ?? "unmatched",
      status: reply.statusCode,
      durationMs: clock.monotonicMs() - request.arrivedMs,
    });
    done(null, payload);
  });
}

/** Only creates wait for the lease; everything that is asked for waits its turn. */
function openDoors(options: DoorOptions) {
  const others = { ...options, admittance: () => OPEN, onWaiting: () => undefined };
  return { creating: new Door(options), others: new Door(others) };
}

/** Another node goes elsewhere, or comes again, where it hears UNAVAILABLE: nothing was done. */
function waitAsPeer(door: Door): OnRequest {
  return (request, _, done) => {
    door.ask({
      arrivedMs: request.arrivedMs,
      isGone: () => request.raw.destroyed,
      enter: (refusal) => done(refusal === undefined ? undefined : unavailable(refusal.message)),
    });
  };
}

function last(route: RouteOptions, hook: OnRequest): void {
  route.onRequest = [...[route.onRequest ?? []].flat(), hook];
}

/** Before what the route itself does. Known here once; Fastify puts a request's `routeOptions` together at every look. */
function first(route: RouteOptions, hook: OnRequest): void {
  route.onRequest = [hook, ...[route.onRequest ?? []].flat()];
}
