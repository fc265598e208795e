import type { Kill } from "../domain/cluster/kills.ts";
import type { FencepostError } from "../domain/errors.ts";
import type { Address, Lane } from "../domain/lane.ts";
import { isCount, isText } from "../domain/text/refusal.ts";
import { STATES, type State } from "../domain/transaction/transitions.ts";
import type { InstanceKey, InstanceRecord } from "./lease-store.ts";
import type { TransactionRecord } from "./query-store.ts";

/** One create on its way to the lane's owner. The node that the caller asked gives the id, so that a repeat is the same transaction. */
export interface ForwardedCreate {
  readonly txId: string;
  /** Name of the API key that the caller showed. */
  readonly owner: string | null;
  /** The part of the lane's queue that this key may fill; absent: all of it. */
  readonly queueShare?: number;
  /** Signer that was chosen, if `request` names a pool. */
  readonly chosen?: Address;
  /** The request as the caller sent it; the owner validates it again. */
  readonly request: Readonly<Record<string, unknown>>;
}

export interface ForwardedAnswer extends Pick<TransactionRecord, "txId" | "lane" | "requestId" | "nonce" | "state"> {
  /** "existing": the same request id and payload had been accepted before. */
  readonly outcome: "created" | "existing";
}

/** Something only the owner of a lane can do, by the name that every node knows. JSON: it may have to travel. */
export interface LaneRequest {
  readonly action: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Name of the API key that the caller showed. */
  readonly owner: string | null;
  /** For requests that are enqueued in the database: carried out again after a crash it is still done once. */
  readonly repeatable?: boolean;
  /** It was begun before, by this owner or the one before it, and its outcome is unknown. */
  readonly again?: boolean;
}

export interface LaneAnswer {
  readonly answer: unknown;
}

/** How a request is sent to another node. */
export interface Sending {
  /** The same creates may have been sent before, without an answer: the receiver looks for their ids first. */
  readonly repeat: boolean;
  /** Without an answer in this time, the node counts as silent. */
  readonly withinMs: number;
}

/** Another node of the same database. */
export interface Peers {
  /** This process registers as that instance, reached at that URL. What it publishes of itself, so that others know it. */
  introduce(instanceId: string, url: string): InstanceKey;
  /** All registered instances, as just read: requests are sent to them, and accepted from them. */
  know(instances: readonly InstanceRecord[]): void;
  /**
   * Forwards creates to a node, which answers or refuses but never forwards: one hop at most. Throws `PeerUnreachable`
   * if there is no answer.
   */
  create(
    url: string,
    creates: readonly ForwardedCreate[],
    sending: Sending,
  ): Promise<readonly (ForwardedAnswer | FencepostError)[]>;
  /** Hands one request to the owner of a lane, under the same rule. */
  act(url: string, lane: Lane, request: LaneRequest & Pick<Sending, "withinMs">): Promise<LaneAnswer | FencepostError>;
  /** Notifies a node of a kill. It obeys once this resolves; throws `PeerUnreachable` if that is unknown. */
  kill(url: string, kill: Kill, withinMs: number): Promise<void>;
  close(): Promise<void>;
}

export class PeerUnreachable extends Error {
  override readonly name = "PeerUnreachable";
  /** True: the request never left, so nothing can have happened there. */
  readonly neverSent: boolean;

  constructor(message: string, neverSent: boolean, options?: ErrorOptions) {
    super(message, options);
    this.neverSent = neverSent;
  }
}

/** The owner's answer to one create, received over HTTP or through the database; or a text about what is malformed. */
export function readForwardedAnswer(fields: Readonly<Record<string, unknown>>): ForwardedAnswer | string {
  const { outcome, txId, lane, requestId, nonce, state } = fields;
  const isOutcome = outcome === "created" || outcome === "existing";
  if (!isOutcome || !isText(txId) || !isLane(lane)) return "a result that is none";
  if (!(requestId === null || isText(requestId))) return "its request id is not text";
  if (!(nonce === null || isCount(nonce))) return "its nonce is not a number";
  if (!isState(state)) return `its state is ${String(state)}`;
  const { chainId, signer } = lane;
  return { outcome, txId, lane: { chainId, signer }, requestId, nonce, state };
}

const isState = (value: unknown): value is State => STATES.some((state) => state === value);

const isLane = (value: unknown): value is Lane => {
  if (typeof value !== "object" || value === null) return false;
  const { chainId, signer } = value as Partial<Lane>;
  return isCount(chainId) && typeof signer === "string" && /^0x[0-9a-f]{40}$/.test(signer);
};
