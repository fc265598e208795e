import { FencepostError } from "../../domain/errors.ts";
import type { Limits } from "../../domain/keys/principal.ts";
import type { Lane } from "../../domain/lane.ts";
import type { OrderKey } from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";

/** Something that only the owner of a lane can do; any node may be asked for it. */
export interface Operation<Ports, Body, Asked extends { readonly lane: Lane }, Done, Answer> {
  /**
   * The request, validated, with the lane that it is for. On the node that hears it: asked by a caller or by a peer.
   * `owner`: the name of the API key that the caller showed.
   */
  laneOf(ports: Ports, body: Body, owner: string | null): Asked | Promise<Asked>;
  /** As the owner is told, where the words depend on who hears them. */
  travels?(body: Body, asked: Asked): Body;
  /** True where it was done before, under the key of its order: then nobody is asked to do it. Throws where the key is another order's. */
  isDone?(ports: Ports, asked: Asked): Promise<boolean>;
  /** A repeat of the very same words is recognised, so that an owner may finish what the one before it began. Absent: it is not. */
  repeatable?(asked: Asked): boolean;
  /** By the owner, under its fence. What it returns must survive JSON: it may have to travel. */
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
 * An order that its giver named by a key (`Idempotency-Key`) is carried out once: whoever repeats it, after whatever
 * silence, at whichever node, gets the transaction or the lane as it stands. The key is written in the commit that carries
 * the order out (domain/ledger/order-keys.ts).
 *
 * Reads: keys. Writes: nothing. A crash leaves the key and what was done under it, or neither.
 */

/** True: this very order was carried out. Throws where another one was, under the same key. */
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
