/**
 * An order that its giver named by a key (`Idempotency-Key`) is carried out once: whoever repeats it, after whatever
 * silence, at whichever node, gets the transaction or the lane as it stands. The key is written in the commit that carries
 * the order out (domain/ledger/order-keys.ts).
 *
 * Reads: keys. Writes: nothing. A crash leaves the key and what was done under it, or neither.
 */
import { FencepostError } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { OrderKey } from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";

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
