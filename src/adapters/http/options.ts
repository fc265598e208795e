import type { TSchema } from "typebox";
import type { Created, FencepostApi } from "../../application/api.ts";
import type { Checksum } from "../../domain/checksum.ts";
import type { FencepostError } from "../../domain/errors.ts";
import type { Address, Lane } from "../../domain/lane.ts";
import type { Principal, Scope } from "../../domain/principal.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ForwardedCreate, LaneAnswer, LaneRequest } from "../../ports/peers.ts";
import type { DoorOptions } from "./door.ts";
import type { WireOptions } from "./host-and-origin.ts";
import type { LongPolls } from "./long-polls.ts";

export interface HttpServerOptions {
  readonly api: FencepostApi;
  /** "none" leaves every route open; an empty list closes every route that is not open by itself. */
  readonly apiKeys: readonly ApiKey[] | "none";
  readonly metrics: () => Promise<{ readonly contentType: string; readonly body: string }>;
  /** EIP-55. Called once per address: answers are remembered. */
  readonly checksum: Checksum;
  readonly version: string;
  readonly clock: Clock;
  /** Served without a key, by exact path. */
  readonly files?: ReadonlyMap<string, StaticFile>;
  readonly logger?: HttpLogger;
  /** For `http_request_duration_seconds`: once per answer. */
  readonly onResponse?: (report: ResponseReport) => void;
  /** What other nodes of the same database may ask. Without it there is no such route. */
  readonly peer?: PeerReceiver;
  /** Which names it answers to, and to which web pages. Without it, any name and no page of another site. */
  readonly wire?: WireOptions;
  /** Which requests are let in under overload. Without it, all are. */
  readonly door?: Omit<DoorOptions, "clock" | "arrivals">;
}

export interface PeerReceiver {
  /** What the nodes share. A function is asked until it has answered once; while it fails, peers are told to go elsewhere. */
  readonly secret: string | (() => Promise<string>);
  /** One fate per create, in order. */
  create(creates: readonly ForwardedCreate[], repeat: boolean): Promise<readonly (Created | FencepostError)[]>;
  act(lane: Lane, request: LaneRequest): Promise<LaneAnswer | FencepostError>;
}

export interface ApiKey {
  readonly name: string;
  readonly secret: string;
  /** Without them: those of a usual key. */
  readonly scopes?: readonly Scope[];
  /** Without them: all. */
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

export interface ResponseReport {
  readonly method: string;
  /** The route's pattern, never the path: a label must stay bounded. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
}

/** What every route file is given. */
export interface RouteContext extends Pick<HttpServerOptions, "api" | "checksum" | "clock" | "version"> {
  readonly longPolls: LongPolls;
}

/** Of one transaction; and of an order, as a replacement brings a payload like a create's. */
export const TRANSACTION_LIMIT_BYTES = 256 * 1024;

/** Who gave an order, for the audit. */
export function actorOf({ name }: Principal): string {
  return `operator:${name ?? "anonymous"}`;
}

/** By status: an answer is written by this schema, and members that it does not name stay inside. */
export function answering(response: Readonly<Record<number, TSchema>>) {
  return { schema: { response } };
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Answered without an API key. */
    open?: true;
    /** For other nodes: API keys mean nothing here, the route asks for the cluster's secret itself. */
    peer?: true;
    /** Creates: not let in while this node could not act on it, not even read. */
    takesIn?: true;
    /** Exists only to say 405. */
    refusal?: true;
  }
}
