import { FencepostError } from "../../domain/errors.ts";
import type { Limits } from "../../domain/keys/principal.ts";
import type { Lane } from "../../domain/lane.ts";
import type { ActionKey } from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";

/** An operation that only the owner of a lane can perform; any node accepts the request. */
export interface Operation<Ports, Body, Asked extends { readonly lane: Lane }, Done, Answer> {
  /**
   * Validates the request and finds its lane. Runs on the node that receives it, from a caller or a peer. `owner`: the
   * name of the caller's API key.
   */
  laneOf(ports: Ports, body: Body, owner: string | null): Asked | Promise<Asked>;
  /**
   * Completes the body before it is forwarded, if the owner's node would otherwise read it differently from this node.
   */
  travels?(body: Body, asked: Asked): Body;
  /**
   * True if the operation was already done under its idempotency key. Then it is not sent to the owner again. Throws if
   * the key belongs to another action.
   */
  isDone?(ports: Ports, asked: Asked): Promise<boolean>;
  /**
   * True if an exact repeat of the request is recognised, so that a new owner may finish what the previous one began.
   * If absent, repeats are not recognised.
   */
  repeatable?(asked: Asked): boolean;
  /** Runs on the owner, under its fence. The result must be serializable as JSON, because it may be forwarded. */
  perform(ports: Ports, lane: OwnedLane, asked: Asked): Promise<Done>;
  /**
   * Reads the caller's response, on the node that received the call. If absent, the response is the result of
   * `perform`.
   */
  answer?(ports: Ports, asked: Asked, done: Done): Answer | Promise<Answer>;
}

/**
 * Registers an operation under this name, so that other nodes can forward it, and returns the function that serves the
 * call on any node.
 */
export type Offer<Ports> = <Body extends object, Asked extends { readonly lane: Lane }, Done, Answer>(
  action: string,
  operation: Operation<Ports, Body, Asked, Done, Answer>,
) => (body: Body, owner?: string | null, limits?: Limits) => Promise<Answer>;

export interface OwnerPorts {
  readonly lanes: { own(lane: Lane): Promise<OwnedLane> };
}

/**
 * An action with an idempotency key (`Idempotency-Key`) is carried out once: a repeat, at any time and on any node,
 * gets the current transaction or lane. The key is written in the commit that carries out the action
 * (domain/ledger/draft.ts).
 *
 * Reads: keys. Writes: nothing. A crash leaves the key and the action's effect, or neither.
 */

/** True if this action was carried out under its idempotency key. Throws if the key was used for another action. */
export async function wasCarriedOut(
  { store }: Pick<Ports, "store">,
  lane: Lane,
  actionKey: ActionKey | undefined,
): Promise<boolean> {
  if (actionKey === undefined) return false;
  const kept = await store.carriedOut(lane, actionKey);
  if (kept === null) return false;
  if (kept === actionKey.fingerprint) return true;
  const { subject } = actionKey;
  const whose = subject === "" ? "this signer" : `transaction ${subject}`;
  const detail = `Idempotency-Key: another order for ${whose} was carried out under this key; nothing was done now`;
  throw new FencepostError("REQUEST_ID_REUSED", detail, subject === "" ? {} : { txId: subject });
}
