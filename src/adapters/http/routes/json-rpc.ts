/** Ethereum's JSON-RPC, served at `/rpc`, so that a client can use this node as its only provider. */
import { setMaxListeners } from "node:events";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { JsonRpcQuery } from "../../../contract/calls/json-rpc.ts";
import { Transaction } from "../../../contract/schemas/transaction-schema.ts";
import { USUAL_LOGS_RANGE } from "../../../domain/chain/rpc-methods.ts";
import { FencepostError, invalid, unavailable } from "../../../domain/errors.ts";
import type { Mask } from "../../../domain/text/mask.ts";
import { KEY_AT_END } from "../exchange/auth.ts";
import { type HttpServerOptions, type JsonRpcOptions, type RouteContext, writerOf } from "../exchange/options.ts";
import { errorConverter, noteRefusal, sendProblem } from "../exchange/problems.ts";
import { queryReader } from "../exchange/query.ts";
import { packetAnswerer, refusePacket } from "../rpc/answer-packet.ts";
import { chainReads } from "../rpc/chain-reads.ts";
import { failureOf } from "../rpc/error-codes.ts";
import { RpcFailure, writeAnswer } from "../rpc/packet.ts";
import type { RpcContext } from "../rpc/rpc-context.ts";

const BODY_LIMIT_BYTES = 8 * 1024 * 1024;
/**
 * Time limit for answering a JSON-RPC request. viem repeats a send after ten seconds without a response, so the
 * response that names the transaction must arrive before.
 */
const ANSWERED_WITHIN_MS = 7_500;
const REQUEST_ID_HEADERS = ["idempotency-key", "x-fencepost-request-id"] as const;
const PRINTABLE_ASCII = /^[\x20-\x7e]{1,200}$/;
const JSON_TYPE = "application/json; charset=utf-8";

const readQuery = queryReader(JsonRpcQuery);

type Options = Pick<HttpServerOptions, "onRefused" | "logger" | "rpc">;

const USUAL = { foreignRaw: "refuse", keyInPath: false, methods: [], logsRange: USUAL_LOGS_RANGE } as const;

export function jsonRpcRoutes(app: FastifyInstance, context: RouteContext, options: Options): void {
  const rpc = { ...USUAL, ...options.rpc };
  const answer = answering(context, { ...options, rpc });
  const convert = errorConverter(options);
  const route = (url: string, config: { readonly keyInPath?: true } = {}) =>
    app.post(url, {
      bodyLimit: BODY_LIMIT_BYTES,
      config: { metered: true, ...config },
      errorHandler: (error, request, reply) => {
        reply.removeHeader("connection");
        return sendRefusal(reply, convert(error, request), app.mask);
      },
      handler: answer,
    });
  for (const url of ["/rpc", "/rpc/:chainId"]) {
    route(url);
    if (rpc.keyInPath) route(`${url}${KEY_AT_END}`, { keyInPath: true });
  }
}

function answering(context: RouteContext, { onRefused, rpc }: Options & { readonly rpc: Required<JsonRpcOptions> }) {
  const { clock, mask, checksum, longPolls } = context;
  const servedChains = rememberingChains();
  const answerPacket = packetAnswerer();
  const readChain = chainReads();
  const contextOf = async (request: FastifyRequest, reply: FastifyReply): Promise<Omit<RpcContext, "signal">> => {
    const { api, principal, arrivedMs, bodyBytes: bytes } = request;
    const { nonce, noCode, repeat } = readQuery(request.query);
    const served = await servedChains(api);
    const chainId = chainOf(request, served);
    return {
      api,
      principal,
      chainId,
      servesChain: served.includes(chainId),
      clock,
      mask,
      checksum,
      readChain,
      bytes,
      ...rpc,
      requestId: requestIdIn(request),
      ignoresNonce: nonce === "ignore",
      allowsNoCode: noCode === "allow",
      mergesRepeats: repeat === "merge",
      deadlineMs: arrivedMs + ANSWERED_WITHIN_MS,
      onRefused: (error) => noteRefusal(onRefused, request, error),
      writeTransaction: (view) => String(writerOf(Transaction, reply)({ ...view })),
    };
  };
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { body } = request;
    reply.header("content-type", JSON_TYPE).header("cache-control", "no-store");
    const context = await contextOf(request, reply).catch((error: unknown) => {
      // If a whole packet (a call or a batch) is refused, each of its calls is answered with that refusal.
      if (error instanceof FencepostError) return error;
      throw error;
    });
    if (context instanceof FencepostError) return reply.send(refusePacket(body, failureOf(context, mask)));
    const answer = (signal: AbortSignal) => {
      // Allow any number of listeners on the signal. Each send in a batch adds one, and a batch may have a thousand, so
      // Node.js's leak warning would be wrong.
      setMaxListeners(0, signal);
      return answerPacket({ ...context, signal }, body);
    };
    return reply.send(await longPolls.hold(reply.raw, answer));
  };
}

/** Chain of a request: the one in the path, else the only one that is configured or that the API key allows. */
function chainOf({ params, principal }: FastifyRequest, served: readonly number[]) {
  const { chainId } = params as { chainId?: string };
  if (chainId !== undefined) {
    if (!/^[1-9][0-9]{0,14}$/.test(chainId)) throw invalid("chainId", "the chain id in the path must be a number");
    return Number(chainId);
  }
  const [own, ...others] = principal.chains ?? served;
  if (own !== undefined && others.length === 0) return own;
  throw invalid("chainId", "several chains are configured: send the request to /rpc/{chainId}");
}

/**
 * Caches the ids of the node's chains, which do not change while it runs. An empty list is not cached: it means that
 * the node is starting.
 */
function rememberingChains() {
  let known: readonly number[] = [];
  return async (api: FastifyRequest["api"]) => {
    if (known.length === 0) known = (await api.readiness()).chains.map(({ chainId }) => chainId);
    if (known.length === 0) throw unavailable("this node is starting");
    return known;
  };
}

function requestIdIn({ headers }: FastifyRequest) {
  const given = REQUEST_ID_HEADERS.flatMap((name) => headers[name] ?? []);
  const [first, second] = given;
  if (first === undefined) return null;
  if (second !== undefined && second !== first) throw invalid(REQUEST_ID_HEADERS[1], "differs from idempotency-key");
  if (!PRINTABLE_ASCII.test(first)) throw invalid(REQUEST_ID_HEADERS[0], "must be 1 to 200 characters of ASCII");
  return first;
}

/**
 * Sends the error of a packet (a call or a batch) that was refused as a whole before any call was read. HTTP errors
 * keep their status and form, for proxies and clients; errors in the packet itself become JSON-RPC errors with status
 * 200.
 */
function sendRefusal(reply: FastifyReply, error: FencepostError, mask: Mask) {
  if (error.status !== 400 && error.status !== 413) return sendProblem(reply, error);
  const { message, data } = failureOf(error, mask);
  reply.code(200).header("content-type", JSON_TYPE).header("cache-control", "no-store");
  return reply.send(writeAnswer(null, new RpcFailure(packetCode(error), message, data)));
}

/** JSON-RPC 2.0 error code of a request body that is not JSON (-32700) or not a JSON-RPC request (-32600). */
function packetCode({ extras: { path }, message }: FencepostError): number {
  return path === "" && /JSON|UTF-8|empty/.test(message) ? -32700 : -32600;
}
