/**
 * What operators' orders were carried out under which key (`Idempotency-Key`). Judged behind the lane's lock, and kept in
 * the transaction that carries the order out: a repeat, also of another node after a takeover or after a commit whose
 * outcome nobody heard, finds its key and does nothing.
 */
import type { Change } from "./changes.ts";
import type { Ledger } from "./ledger.ts";
import type { OrderKey } from "./writes.ts";

/** Under which a ledger, and an index of the database, know it. */
export function orderKeyOf({ subject, key }: Pick<OrderKey, "subject" | "key">): string {
  return `${subject}:${key}`;
}

/** An order of this key was carried out before. Whether it was this one is for who asks to say. */
export function isCarriedOut({ ledger }: { ledger: Ledger }, order: OrderKey | undefined): boolean {
  return order !== undefined && ledger.orders.get(orderKeyOf(order)) !== null;
}

export function keepOrderKey(draft: { record(change: Change): void }, order: OrderKey | undefined): void {
  if (order !== undefined) draft.record({ kind: "ordered", order });
}
