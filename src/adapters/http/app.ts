import { maxHeaderSize } from "node:http";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { limitedTo } from "../../application/authority.ts";
import { KeyRates } from "../../application/key-rates.ts";
import { OPEN } from "../../application/loops/reception.ts";
import { isOperators } from "../../contract/scopes.ts";
import { FencepostError, invalid, unavailable } from "../../domain/errors.ts";
import type { Principal } from "../../domain/keys/principal.ts";
import { rememberingChecksum } from "../../domain/text/checksum.ts";
import { type AdmissionOptions, admissionQueue, arrivalsOf, type WaitingRequest } from "./admission/admission-queue.ts";
import { CALLERS_BYTES, heldBytes } from "./admission/held-bytes.ts";
import { refuseTwoHosts, type Wire, wire } from "./admission/host-and-origin.ts";
import { rateHeaders } from "./admission/rate-headers.ts";
import { type Authenticate, authenticator, authorise, inPath, rememberedFor, scopeOf } from "./exchange/auth.ts";
import { acceptOnlyJson } from "./exchange/json-body.ts";
import { LongPolls } from "./exchange/long-polls.ts";
import { decorate, type HttpServerOptions, type RouteContext } from "./exchange/options.ts";
import { ambiguous, MAX_PARAMETER_LENGTH, type Served, type ServedUrl, urlFinder } from "./exchange/other-methods.ts";
import { answerWithProblems, noSuchRoute, problemAnswer, rawAnswer, sendProblem } from "./exchange/problems.ts";
import { reserveBodies } from "./exchange/reserve-bodies.ts";
import { completionStream } from "./routes/completion-stream.ts";
import { createRoutes } from "./routes/create.ts";
import { declaredRoutes } from "./routes/declared.ts";
import { jsonRpcRoutes } from "./routes/json-rpc.ts";
import { fileRoutes, operationRoutes } from "./routes/operations.ts";
import { peerRoutes } from "./routes/peers.ts";

/** Longest time for a request's headers and body to arrive. It does not limit the time until the response. */
const REQUEST_TIMEOUT_MS = 30_000;
/** How often Node.js checks for requests that arrive too slowly; its default is 30 seconds. */
export const LOOK_FOR_SLOW_EVERY_MS = 5_000;
/**
 * Has the kernel probe idle connections, so that a caller which vanished without a word (power, cable, NAT) gives back
 * the place of its stream or long poll: after 10 s, ten probes a second apart (libuv's constants).
 */
export const TCP_KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelay: 10_000 } as const;

/**
 * Creates all routes on a Fastify instance that does not listen yet; tests call it through `inject`. `arrivals` is
 * notified of every connection; `served` maps each registered path pattern to its methods.
 */
export function createHttpApp(options: HttpServerOptions) {
  const longPolls = new LongPolls();
  const arrivals = arrivalsOf(options.clock);
  const app = bareApp();
  decorate(app, options);
  answerWithProblems(app, options);
  acceptOnlyJson(app);
  const authenticate = authenticator(options.apiKeys, options.liveKeys);
  const served = collectRoutes(app);
  addHooks(app, options, { arrivals, authenticate, served });
  reportResponses(app, options, longPolls);
  refuseBadEncoding(app);
  const bytes = heldBytes(CALLERS_BYTES);
  reserveBodies(app, bytes);

  const { clock, mask, version } = options;
  const context: RouteContext = { clock, mask, version, longPolls, checksum: rememberingChecksum(options.checksum) };
  createRoutes(app, context, options);
  declaredRoutes(app, context);
  completionStream(app, context, { ...options, authenticate });
  operationRoutes(app, context, options);
  jsonRpcRoutes(app, context, options);
  if (options.peer !== undefined) peerRoutes(app, options.peer);
  fileRoutes(app, options.files ?? new Map());
  refuseOtherMethods(app, served);
  return { app, longPolls, arrivals, served, bytes };
}

function bareApp(): FastifyInstance {
  return Fastify({
    logger: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Also pass the request timeout to Node.js's server. The server uses it as the upper limit of its timeout for
    // headers, and refuses a longer one.
    http: {
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: LOOK_FOR_SLOW_EVERY_MS,
      ...TCP_KEEP_ALIVE,
    },
    // While the server closes, requests on connections that are still open are answered as usual, so that no request
    // fails.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
    schemaController: { compilersFactory: { buildValidator: refuseToValidate } },
    frameworkErrors: (_, __, reply) => sendProblem(reply, invalid("url", "is not a valid path")),
    clientErrorHandler: (error, socket) => {
      if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
      socket.end(rawAnswer(problemAnswer(unreadable(error.code))));
    },
  });
}

/**
 * Disables Fastify's validation. Queries are validated in query.ts and bodies by the stage that uses them, both with
 * errors of the error catalogue. Without this, Fastify loads its own validator at every start and applies its rules
 * too.
 */
function refuseToValidate(): never {
  throw new Error("Fastify's request validation is disabled: a route's schema may only describe responses");
}

function unreadable(code: string | undefined) {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return invalid("", `the request took longer than ${REQUEST_TIMEOUT_MS / 1_000} seconds to arrive`);
  if (code !== "HPE_HEADER_OVERFLOW") return invalid("", "the request is not valid HTTP");
  return invalid("url", `the URL and the headers together are longer than ${maxHeaderSize / 1024} KiB`);
}

/**
 * Refuses invalid percent-escapes in the query string. The parser leaves them unchanged, so `%ff` would be used as the
 * text "%ff".
 */
function refuseBadEncoding(app: FastifyInstance) {
  app.addHook("onRequest", ({ url }, _, done) => {
    try {
      if (url.includes("?")) decodeURIComponent(url.slice(url.indexOf("?")));
    } catch {
      return done(invalid("url", "the query string is not percent-encoded UTF-8"));
    }
    done();
  });
}

function collectRoutes(app: FastifyInstance) {
  const served = new Map<string, Set<string>>();
  app.addHook("onRoute", ({ url, method, config }) => {
    if (config?.refusal === true) return;
    const methods = served.get(url) ?? new Set();
    for (const name of [method].flat()) methods.add(name);
    served.set(url, methods);
  });
  return served;
}

/**
 * Registers refusals for paths that a route with parameters would serve with another method. Other wrong methods have
 * no route, and are refused by the hook for those.
 */
function refuseOtherMethods(app: FastifyInstance, served: Served) {
  const findUrl = urlFinder(served);
  for (const url of ambiguous(served)) {
    const found = findUrl(url);
    if (found === undefined) continue;
    app.route({
      url,
      method: app.supportedMethods.filter((method) => !served.get(url)?.has(method)),
      config: { open: true, refusal: true },
      onRequest: (_, reply, done) => done(otherMethod(reply, found)),
      handler: () => undefined,
    });
  }
}

function otherMethod(reply: FastifyReply, { allow }: ServedUrl) {
  reply.header("allow", allow);
  return new FencepostError("METHOD_NOT_ALLOWED", `this route supports only the methods ${allow}`);
}

interface Around extends Pick<AdmissionOptions, "arrivals"> {
  readonly authenticate: Authenticate;
  readonly served: Served;
}

type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void;

/** Routes that probes and scrapers call under addresses that change, so their Host header is not checked. */
const UNDER_ANY_NAME = new Set(["/healthz", "/readyz", "/metrics"]);

/** Adds the hooks around every request: authentication and admission. */
function addHooks(app: FastifyInstance, options: HttpServerOptions, { arrivals, authenticate, served }: Around) {
  const { clock, operators, within } = options;
  /** URLs of operators' routes. Their other methods are hidden with them, because `Allow` would reveal the methods. */
  const operatorsUrls = new Set<string>();
  const rates = new KeyRates(clock);
  const apiOf = rememberedFor((principal: Principal) => limitedTo(principal, options.api, rates));
  const addRates = rateHeaders(rates);
  const mayCome = wire(options.wire ?? { hosts: "any", origins: [] });
  const queues = options.admission === undefined ? null : admissionQueues({ ...options.admission, clock, arrivals });
  const isHidden = ({ raw }: FastifyRequest) => operators !== undefined && !operators.has(raw.socket);
  const refuseUnrouted = unrouted({
    served,
    mayCome,
    isHiddenUrl: (url, asked) => operatorsUrls.has(url) && isHidden(asked),
  });
  app.addHook("onRequest", (request, reply, done) => {
    request.arrivedMs = clock.monotonicMs();
    refuseTwoHosts(request.raw.rawHeaders);
    if (request.is404) refuseUnrouted(request, reply, done);
    else done();
  });
  app.addHook("onRoute", (route) => {
    const { url, config = {} } = route;
    const { open = false, peer = false, urgent = false, takesIn, keyInPath } = config;
    const scope = open || peer ? null : scopeOf(route);
    if (peer || config.operators || (scope !== null && isOperators(scope))) operatorsUrls.add(url);
    // Decided now: a route that is added later to the same URL may be an operators' route.
    const isOperatorsUrl = operatorsUrls.has(url);
    const entry = { open, anyHost: UNDER_ANY_NAME.has(url) || peer };
    if (config.metered) route.onSend = [addRates, ...[route.onSend ?? []].flat()];
    if (within !== undefined && (takesIn || url.startsWith("/rpc"))) {
      // Enter the trace right before the handler, so that waiting for admission or for the body does not lose it.
      const enter: OnRequest = (request, _, done) => within(request.headers.traceparent, done);
      route.preHandler = [enter, ...[route.preHandler ?? []].flat()];
    }
    // Use the route's settings computed here: Fastify rebuilds a request's `routeOptions` at every access.
    const before: OnRequest = (request, reply, done) => {
      request.pattern = url;
      if (isOperatorsUrl && isHidden(request)) return done(noSuchRoute(request));
      if (!mayCome(request, reply, entry)) return;
      if (scope !== null) {
        const { secret } = request.params as { secret?: string };
        request.principal = keyInPath
          ? inPath(authenticate(`Bearer ${secret}`))
          : authenticate(request.headers.authorization);
        authorise(request.principal, scope);
        request.api = apiOf(request.principal);
      }
      if (queues === null || scope === null || urgent) return done();
      (takesIn ? queues.creating : queues.others)(waitingRequest(request, done));
    };
    // Refuse with UNAVAILABLE: nothing was done, so the calling node retries or calls another node.
    const wait: OnRequest = (request, _, done) => {
      queues?.others(waitingRequest(request, (refusal) => done(refusal && unavailable(refusal.message))));
    };
    // Requests of other nodes are queued after their authentication, so that unauthenticated callers take no place in
    // the queue.
    route.onRequest = [before, route.onRequest ?? [], peer && !urgent && queues !== null ? wait : []].flat();
  });
}

/** Reports each response to the metrics, and closes connections of a draining node. */
function reportResponses(app: FastifyInstance, { clock, onResponse }: HttpServerOptions, longPolls: LongPolls) {
  // Measure the duration when the response is sent, not when its last byte has left: waiting for that would cost a
  // create a twentieth of its time.
  app.addHook("onSend", (request, reply, payload, done) => {
    // A draining node stops soon, so it closes kept-alive connections: clients then open the next one to another node.
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

interface Unrouted {
  readonly served: Served;
  readonly mayCome: Wire;
  readonly isHiddenUrl: (url: string, request: FastifyRequest) => boolean;
}

/** Refuses a method that its URL does not support, before any body is read. */
function unrouted({ served, mayCome, isHiddenUrl }: Unrouted): OnRequest {
  const findUrl = urlFinder(served);
  return (request, reply, done) => {
    const found = findUrl(request.url);
    if (found === undefined) return done();
    request.pattern = found.url;
    if (isHiddenUrl(found.url, request)) return done(noSuchRoute(request));
    if (!mayCome(request, reply, { open: true, anyHost: UNDER_ANY_NAME.has(found.url) })) return;
    done(otherMethod(reply, found));
  };
}

/**
 * Creates two admission queues: one for routes of creates, one for all other requests (JSON-RPC included). Creates are
 * also held back while this node has no valid lease and no other node is live; other requests only wait their turn.
 */
function admissionQueues(options: AdmissionOptions) {
  const others = { ...options, admittance: () => OPEN, onWaiting: () => undefined };
  return { creating: admissionQueue(options), others: admissionQueue(others) };
}

function waitingRequest({ arrivedMs, raw }: FastifyRequest, enter: WaitingRequest["enter"]): WaitingRequest {
  return { arrivedMs, isGone: () => raw.destroyed, enter };
}
