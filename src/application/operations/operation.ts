import { FencepostError } from "../../domain/errors.ts";
import type { Limits } from "../../domain/keys/principal.ts";
import type { Lane } from "../../domain/lane.ts";
import type { OrderKey } from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";

/** Something that only the owner of a lane can do; any node may be asked for it. */
export interface Operation<Ports, Body, Asked extends { readonly lane: Lane }, Done, Answer> {
  /**
   * The validated request with its lane. Runs on the node that receives it, from a caller or a peer. `owner`: the name
   * of the caller's API key.
   */
  laneOf(ports: Ports, body: Body, owner: string | null): Asked | Promise<Asked>;
  /** The body for the owner's node, if it differs by receiver. */
  travels?(body: Body, asked: Asked): Body;
  /**
   * True if it was done before, under the action's idempotency key: then it is not requested again. Throws if the key
   * belongs to another action.
   */
  isDone?(ports: Ports, asked: Asked): Promise<boolean>;
  /** A repeat of the very same words is recognised, so that an owner may finish what the one before it began. Absent: it is not. */
  repeatable?(asked: Asked): boolean;
  /** Runs on the owner, under its fence. Its result must survive JSON: it may be forwarded. */
  perform(ports: Ports, lane: OwnedLane, asked: Asked): Promise<Done>;
  /** Answer to the caller, read on the node that it asked. Absent: what `perform` returned. */
  answer?(ports: Ports, asked: Asked, done: Done): Answer | Promise<Answer>;
}

/** Makes an operation known to the other nodes by this name, and a call that any node may be asked for. */
export type Offer<Ports> = <Body extends object, Asked extends { readonly lane: Lane }, Done, Answer>(
  action: string,
  operation: Operation<Ports, Body, Asked, Done, Answer>,
) => (body: Body, owner?: string | null, limits?: Limits) => Promise<Answer>;

export interface OwnerPorts {
  readonly lanes: { own(lane: Lane): Promise<OwnedLane> };
}

/**
 * An action with an idempotency key (`Idempotency-Key`) is carried out once: a repeat, at any time and at any node,
 * gets the transaction or the lane as it is. The key is written in the commit that carries the action out
 * (domain/ledger/draft.ts).
 *
 * Reads: keys. Writes: nothing. A crash leaves the key and the action's effect, or neither.
 */

/** True: this action was carried out. Throws if another one was, under the same key. */
export async function wasCarriedOut(
  { store }: Pick<Ports, "store">,
  lane: Lane,
  order: OrderKey | undefined,
): Promise<boolean> {
  if (order === undefined) return false;
  const kept = await store.carriedOut(lane, order);
  if (kept === null) return false;
  if (kept === order.fingerprint) return true;
  const { subject } = order;
  const whose = subject === "" ? "this signer" : `transaction ${subject}`;
  const detail = `Idempotency-Key: another order for ${whose} was carried out under this key; nothing was done now`;
  throw new FencepostError("REQUEST_ID_REUSED", detail, subject === "" ? {} : { txId: subject });
}
