import type { FastifyInstance, FastifyRequest } from "fastify";
import { OPEN } from "../../application/admittance.ts";
import { unavailable } from "../../domain/errors.ts";
import { ANONYMOUS, authenticator } from "./auth.ts";
import { type Arrivals, Door, type DoorOptions, type Visitor } from "./door.ts";
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
    const own = [route.onRequest ?? []].flat();
    // Known here once; Fastify puts a request's `routeOptions` together at every look.
    const before: OnRequest = (request, _, done) => {
      request.pattern = url;
      if (asksForKey) request.keyName = authenticate(request.headers.authorization);
      if (doors === null || !asksForKey) return done();
      (takesIn ? doors.creating : doors.others).ask(visitor(request, done));
    };
    // Another node goes elsewhere, or comes again, where it hears UNAVAILABLE: nothing was done.
    const wait: OnRequest = (request, _, done) => {
      doors?.others.ask(visitor(request, (refusal) => done(refusal && unavailable(refusal.message))));
    };
    // Peers wait behind the look at who asks, which is the route's own: strangers take no place at the door.
    route.onRequest = [before, ...own, ...(isPeer && doors !== null ? [wait] : [])];
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

function visitor({ arrivedMs, raw }: FastifyRequest, enter: Visitor["enter"]): Visitor {
  return { arrivedMs, isGone: () => raw.destroyed, enter };
}
