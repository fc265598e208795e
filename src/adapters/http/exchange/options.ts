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
  /** "none" leaves every route open; an empty list closes every route that is not open by itself. */
  readonly apiKeys: readonly ApiKey[] | "none";
  /** Keys that are managed while the node runs; asked after those above, by the SHA-256 of the secret in hex. */
  readonly liveKeys?: { find(digest: string): Principal | null };
  readonly metrics: () => Promise<{ readonly contentType: string; readonly body: string }>;
  /** EIP-55. Called once per address: answers are remembered. */
  readonly checksum: Checksum;
  readonly version: string;
  readonly clock: Clock;
  /** Served without a key, by exact path. */
  readonly files?: ReadonlyMap<string, StaticFile>;
  readonly logger?: HttpLogger;
  /** The part of an error that may be shown. */
  readonly mask: Mask;
  /** For the audit: what a key, or a request without one, was not allowed to do. */
  readonly onRefused?: (refusal: Refusal) => void;
  /** Runs the handler of a create within the trace that its `traceparent` names. Without it, the header is not looked at. */
  readonly within?: (traceparent: unknown, handle: () => void) => void;
  /** For `http_request_duration_seconds`: once per answer. */
  readonly onResponse?: (report: ResponseReport) => void;
  /** Calls from other nodes of the same database. Without it there are no such routes. */
  readonly peer?: PeerReceiver;
  /** Connections to the operators' address. If set, operators' routes are served there only, and are 404 elsewhere. */
  readonly operators?: { has(connection: Socket): boolean };
  /** Which names it answers to, and to which web pages. Without it, any name and no page of another site. */
  readonly wire?: WireOptions;
  /** Ethereum's JSON-RPC. Absent: the default settings. */
  readonly rpc?: JsonRpcOptions;
  /** Which requests are let in under overload. Without it, all are. */
  readonly admission?: Omit<AdmissionOptions, "clock" | "arrivals">;
}

export interface JsonRpcOptions {
  /** Treatment of raw transactions of unknown signers. */
  readonly foreignRaw: "pass" | "refuse";
  /** An API key may be in the path: for clients that send no headers. */
  readonly keyInPath: boolean;
  /** Reads that are passed on to the chain's endpoints beside the usual ones, by exact name. */
  readonly methods?: readonly string[];
  /** Blocks that one filter of logs may reach over. */
  readonly logsRange?: number;
}

export interface PeerReceiver {
  /** Throws unless another node of the same database signed this head of a request; its body is checked when it has come. */
  admit(route: string, authorization: string | undefined): Promise<CheckBody>;
  /** One result per create, in order. */
  create(creates: readonly ForwardedCreate[], repeat: boolean): Promise<readonly (Created | FencepostError)[]>;
  act(lane: Lane, request: LaneRequest): Promise<LaneAnswer | FencepostError>;
  /** Holds to an order to stop from here on. */
  kill(kill: Kill): Promise<void>;
}

export type CheckBody = (body: Buffer) => void;

export interface ApiKey extends Partial<Quotas> {
  readonly name: string;
  readonly secret: string;
  /** Absent: `USUAL_SCOPES`. */
  readonly scopes?: readonly Scope[];
  /** Absent: all. The same for `chains`. */
  readonly signers?: readonly Address[];
  readonly chains?: readonly number[];
}

export interface StaticFile {
  readonly contentType: string;
  readonly body: Buffer | string;
}

export interface HttpLogger {
  error(fields: object, message: string): void;
}

export interface Refusal {
  readonly code: "UNAUTHENTICATED" | "FORBIDDEN" | "QUOTA_EXCEEDED";
  /** For a secret that no key has: `apiKey`. */
  readonly rule: string;
  /** The name of the key; null: none was asked for, or it had not come to that. */
  readonly key: string | null;
  readonly method: string;
  readonly route: string;
}

export interface ResponseReport {
  readonly method: string;
  /** The route's pattern, never the path: a label must stay bounded. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
}

/** Input of every route file. */
export interface RouteContext extends Pick<HttpServerOptions, "checksum" | "clock" | "mask" | "version"> {
  readonly longPolls: LongPolls;
}

type Writer = ReturnType<FastifyReply["compileSerializationSchema"]>;
const writers = new WeakMap<TSchema, Writer>();

/**
 * Writes each answer by the schema of its status: members that the schema does not name stay private. A schema is
 * compiled at its first answer, once for all routes. As `schema.response` Fastify would compile each for each route, a
 * quarter of a node's start-up cost.
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

/** Gives requests the members that hooks set; Fastify wants to know them before the first route. */
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
    /** The caller, authenticated once before admission. */
    principal: Principal;
    /** The API as this caller may use it. */
    api: FencepostApi;
    /** Pattern of its route; null if none matched. */
    pattern: string | null;
    arrivedMs: number;
    /** Size of the received body. */
    bodyBytes: number;
    /** For requests of other nodes: throws if the body is not the signed one. */
    checkBody: CheckBody | null;
    /** Reservation of its body; null: no body, or not read. */
    held: Held | null;
  }
  interface FastifyContextConfig {
    /** Answered without an API key. */
    open?: true;
    /** Beside what only operators' scopes open: for those who run the nodes. */
    operators?: true;
    /** For other nodes: API keys mean nothing here, the route looks for a node's signature itself. */
    peer?: true;
    /** Creates: not let in while this node could not act on it, not even read. */
    takesIn?: true;
    /** Counts against the rate of the key, and says how much of that is left. */
    metered?: true;
    /** Let in at once, also under overload: an order to stop does not wait behind what it is to stop. */
    urgent?: true;
    /** The secret of the API key is in the path. */
    keyInPath?: true;
    /** Exists only to say 405. */
    refusal?: true;
  }
}
