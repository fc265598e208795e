import type { Kill } from "../domain/cluster/kills.ts";
import type { FencepostError } from "../domain/errors.ts";
import type { Address, Lane } from "../domain/lane.ts";
import { isCount, isText } from "../domain/text/refusal.ts";
import { STATES, type State } from "../domain/transaction/transitions.ts";
import type { InstanceKey, InstanceRecord } from "./lease-store.ts";
import type { TransactionRecord } from "./query-store.ts";

/**
 * One create that is forwarded to the lane's owner. The node that received the caller's request assigns the transaction
 * id, so that forwarding it again creates no second transaction.
 */
export interface ForwardedCreate {
  readonly txId: string;
  /** Name of the API key that the caller used. */
  readonly owner: string | null;
  /** The share of the lane's queue that this API key may fill; absent: all of it. */
  readonly queueShare?: number;
  /** Signer that was chosen, if `request` names a pool. */
  readonly chosen?: Address;
  /** The request as the caller sent it; the owner validates it again. */
  readonly request: Readonly<Record<string, unknown>>;
}

export interface ForwardedAnswer extends Pick<TransactionRecord, "txId" | "lane" | "requestId" | "nonce" | "state"> {
  /** "existing": a request with the same id and payload was accepted before. */
  readonly outcome: "created" | "existing";
}

/**
 * A request that only the owner of a lane can perform, by an action name that is the same on every node. It is JSON,
 * because it may be sent to another node.
 */
export interface LaneRequest {
  readonly action: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Name of the API key that the caller used. */
  readonly owner: string | null;
  /**
   * For requests that are enqueued in the database: true if the request may be repeated after a crash and still takes
   * effect only once.
   */
  readonly repeatable?: boolean;
  /** True if the request was begun before, by this owner or the previous one, and its outcome is unknown. */
  readonly again?: boolean;
}

export interface LaneAnswer {
  readonly answer: unknown;
}

/** Options for sending a request to another node. */
export interface Sending {
  /**
   * True if the same creates may have been sent before without a response. The receiver then looks up their ids first.
   */
  readonly repeat: boolean;
  /** Time after which a node without a response counts as silent. */
  readonly withinMs: number;
}

/** Communication with the other nodes of the same database. */
export interface Peers {
  /**
   * Called when this process registers as `instanceId` with `url`. Returns the public key that the instance publishes,
   * with its proof, so that other nodes can verify its requests.
   */
  introduce(instanceId: string, url: string): InstanceKey;
  /**
   * Sets the list of registered instances, as just read from the database. Requests are sent only to these instances,
   * and accepted only from them.
   */
  know(instances: readonly InstanceRecord[]): void;
  /**
   * Forwards creates to a node, which accepts or refuses them but never forwards: one hop at most. Throws
   * `PeerUnreachable` if there is no response.
   */
  create(
    url: string,
    creates: readonly ForwardedCreate[],
    sending: Sending,
  ): Promise<readonly (ForwardedAnswer | FencepostError)[]>;
  /** Forwards one request to the owner of a lane. The owner never forwards it again. */
  act(url: string, lane: Lane, request: LaneRequest & Pick<Sending, "withinMs">): Promise<LaneAnswer | FencepostError>;
  /** Sends a kill to a node. Once this resolves, the node obeys it; throws `PeerUnreachable` if that is unknown. */
  kill(url: string, kill: Kill, withinMs: number): Promise<void>;
  close(): Promise<void>;
}

export class PeerUnreachable extends Error {
  override readonly name = "PeerUnreachable";
  /** True if the request never left this process, so the other node cannot have done anything. */
  readonly neverSent: boolean;

  constructor(message: string, neverSent: boolean, options?: ErrorOptions) {
    super(message, options);
    this.neverSent = neverSent;
  }
}

/**
 * Parses the owner's response to one create, received over HTTP or through the database. Returns a text about the
 * mistake if it is malformed.
 */
export function readForwardedAnswer(fields: Readonly<Record<string, unknown>>): ForwardedAnswer | string {
  const { outcome, txId, lane, requestId, nonce, state } = fields;
  const isOutcome = outcome === "created" || outcome === "existing";
  if (!isOutcome || !isText(txId) || !isLane(lane)) return "a result has no valid outcome, txId or lane";
  if (!(requestId === null || isText(requestId))) return "a result's request id is not text";
  if (!(nonce === null || isCount(nonce))) return "a result's nonce is not a number";
  if (!isState(state)) return `a result's state is ${String(state)}`;
  const { chainId, signer } = lane;
  return { outcome, txId, lane: { chainId, signer }, requestId, nonce, state };
}

const isState = (value: unknown): value is State => STATES.some((state) => state === value);

const isLane = (value: unknown): value is Lane => {
  if (typeof value !== "object" || value === null) return false;
  const { chainId, signer } = value as Partial<Lane>;
  return isCount(chainId) && typeof signer === "string" && /^0x[0-9a-f]{40}$/.test(signer);
};
