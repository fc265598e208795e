import type { Socket } from "node:net";
import type { DoneFuncWithErrOrRes, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { TSchema } from "typebox";
import type { Created } from "../../../application/api.ts";
import type { FencepostApi } from "../../../application/operations/calls.ts";
import type { Kill } from "../../../domain/cluster/kills.ts";
import type { FencepostError } from "../../../domain/errors.ts";
import type { Principal, Quotas, Scope } from "../../../domain/keys/principal.ts";
import type { Address, Lane } from "../../../domain/lane.ts";
import type { Checksum } from "../../../domain/text/checksum.ts";
import type { Mask } from "../../../domain/text/mask.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { ForwardedCreate, LaneAnswer, LaneRequest } from "../../../ports/peers.ts";
import type { AdmissionOptions } from "../admission/admission-queue.ts";
import type { Held } from "../admission/held-bytes.ts";
import type { WireOptions } from "../admission/host-and-origin.ts";
import type { LongPolls } from "./long-polls.ts";

export interface HttpServerOptions {
  readonly api: FencepostApi;
  /**
   * Configured API keys. "none": no route requires a key. With an empty list, only `liveKeys` open the routes that
   * require a key.
   */
  readonly apiKeys: readonly ApiKey[] | "none";
  /**
   * API keys that are managed while the node runs. Looked up after the configured keys, by the SHA-256 of the secret in
   * hex.
   */
  readonly liveKeys?: { find(digest: string): Principal | null };
  readonly metrics: () => Promise<{ readonly contentType: string; readonly body: string }>;
  /** Adds the checksum to an address (EIP-55). Called once per address: results are cached. */
  readonly checksum: Checksum;
  readonly version: string;
  readonly clock: Clock;
  /** Static files, served by exact path without an API key. */
  readonly files?: ReadonlyMap<string, StaticFile>;
  readonly logger?: HttpLogger;
  /** Masks secrets in error texts. */
  readonly mask: Mask;
  /** Receives each refused permission for the audit, with or without an API key. */
  readonly onRefused?: (refusal: Refusal) => void;
  /**
   * Runs the handler of a create or of a JSON-RPC request within the trace that its `traceparent` header names. Without
   * this function, the header is ignored.
   */
  readonly within?: (traceparent: unknown, handle: () => void) => void;
  /** Called once per response, for the metric `http_request_duration_seconds`. */
  readonly onResponse?: (report: ResponseReport) => void;
  /** Called when the number of open streams has changed. */
  readonly onStreams?: (open: number) => void;
  /** Handles calls from other nodes of the same database. If absent, their routes do not exist. */
  readonly peer?: PeerReceiver;
  /**
   * Connections to the operators' address. If set, operators' routes are served only on these connections, and are 404
   * on others.
   */
  readonly operators?: { has(connection: Socket): boolean };
  /** Accepted Host names and Origins. If absent, any host name is accepted, and no page of another site. */
  readonly wire?: WireOptions;
  /** Settings of Ethereum's JSON-RPC; defaults if absent. */
  readonly rpc?: JsonRpcOptions;
  /** Limits on admitted requests under overload. If absent, all requests are admitted. */
  readonly admission?: Omit<AdmissionOptions, "clock" | "arrivals">;
}

export interface JsonRpcOptions {
  /** What happens to raw transactions of unknown signers: they are passed to the chain, or refused. */
  readonly foreignRaw: "pass" | "refuse";
  /** True if an API key may be in the path, for clients that cannot send headers. */
  readonly keyInPath: boolean;
  /** Names of additional JSON-RPC reads that are forwarded to the chain's endpoints. */
  readonly methods?: readonly string[];
  /** Largest number of blocks that one log filter may span. */
  readonly logsRange?: number;
}

export interface PeerReceiver {
  /**
   * Throws unless another node of the same database signed the request (its `Authorization` header). The returned
   * function checks the body once it has arrived.
   */
  admit(route: string, authorization: string | undefined): Promise<CheckBody>;
  /** Processes forwarded creates; returns one result per create, in order. */
  create(creates: readonly ForwardedCreate[], repeat: boolean): Promise<readonly (Created | FencepostError)[]>;
  act(lane: Lane, request: LaneRequest): Promise<LaneAnswer | FencepostError>;
  /** Stops this node's sends from now on, as the kill request demands. */
  kill(kill: Kill): Promise<void>;
}

export type CheckBody = (body: Buffer) => void;

export interface ApiKey extends Partial<Quotas> {
  readonly name: string;
  readonly secret: string;
  /** Scopes of the API key; absent means `USUAL_SCOPES`. */
  readonly scopes?: readonly Scope[];
  /** Signers that the API key may use; absent means all. Likewise for `chains`. */
  readonly signers?: readonly Address[];
  readonly chains?: readonly number[];
}

export interface StaticFile {
  readonly contentType: string;
  readonly body: Buffer | string;
  /** The body compressed by gzip, for clients that accept it. */
  readonly gzip?: Buffer;
}

export interface HttpLogger {
  error(fields: object, message: string): void;
}

export interface Refusal {
  readonly code: "UNAUTHENTICATED" | "FORBIDDEN" | "QUOTA_EXCEEDED";
  /** Name of the rule that refused; `apiKey` if no key has the given secret. */
  readonly rule: string;
  /** Name of the API key; null if no key is required or the key is unknown. */
  readonly key: string | null;
  readonly method: string;
  readonly route: string;
}

export interface ResponseReport {
  readonly method: string;
  /** Pattern of the route, never the path: metric labels must have a bounded number of values. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
}

/** Input of each function that adds routes. */
export interface RouteContext extends Pick<HttpServerOptions, "checksum" | "clock" | "mask" | "version"> {
  readonly longPolls: LongPolls;
}

type Writer = ReturnType<FastifyReply["compileSerializationSchema"]>;
const writers = new WeakMap<TSchema, Writer>();

/**
 * Serialises each response by the schema of its status, so that members which the schema does not name are left out. A
 * schema is compiled at its first response, once for all routes. With `schema.response`, Fastify would compile each
 * schema for each route, a quarter of a node's start-up cost.
 */
export function answering(response: Readonly<Record<number, TSchema>>) {
  return {
    preSerialization(_: FastifyRequest, reply: FastifyReply, payload: unknown, done: DoneFuncWithErrOrRes) {
      const schema = response[reply.statusCode];
      if (schema !== undefined) reply.serializer(writerOf(schema, reply));
      done(null, payload);
    },
  };
}

export function writerOf(schema: TSchema, reply: FastifyReply): Writer {
  const writer = writers.get(schema) ?? reply.compileSerializationSchema({ ...schema });
  writers.set(schema, writer);
  return writer;
}

const NOT_YET = null as never;

/** Declares the members that hooks set on requests; Fastify requires this before the first route. */
export function decorate(app: FastifyInstance, { mask }: Pick<HttpServerOptions, "mask">): void {
  const members = {
    principal: NOT_YET,
    api: NOT_YET,
    pattern: null,
    arrivedMs: 0,
    bodyBytes: 0,
    checkBody: null,
    held: null,
  };
  for (const [name, value] of Object.entries(members)) app.decorateRequest(name, value);
  app.decorate("mask", mask);
}

declare module "fastify" {
  interface FastifyInstance {
    mask: Mask;
  }
  interface FastifyRequest {
    /** The authenticated caller; set once, before admission. */
    principal: Principal;
    /** The API, restricted to what this caller may do. */
    api: FencepostApi;
    /** Pattern of the request's route; null if none matched. */
    pattern: string | null;
    arrivedMs: number;
    /** Size of the received body in bytes. */
    bodyBytes: number;
    /** For requests of other nodes: throws if the body is not the one that was signed. */
    checkBody: CheckBody | null;
    /** Memory reservation for the request's body; null if it has no body or none was read. */
    held: Held | null;
  }
  interface FastifyContextConfig {
    /** True if the route is served without an API key. */
    open?: true;
    /** True if the route is for operators even though it requires no operator's scope. */
    operators?: true;
    /**
     * True if the route is for other nodes. It checks the calling node's signature itself, and API keys do not apply.
     */
    peer?: true;
    /**
     * True if the route takes creates. While no create can be accepted (see `Reception.admittance`), requests are not
     * admitted and not even read: they wait, or are refused.
     */
    takesIn?: true;
    /** True if the route counts against the API key's rate, and reports how much of the rate is left. */
    metered?: true;
    /**
     * True if requests of the route are admitted at once, even under overload. A kill request must not wait behind the
     * work that it stops.
     */
    urgent?: true;
    /** True if the route takes the secret of the API key in its path. */
    keyInPath?: true;
    /** True if the route exists only to answer 405. */
    refusal?: true;
  }
}
