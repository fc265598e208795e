import { invalid } from "../../domain/errors.ts";
import { fingerprintOfJson } from "../../domain/transaction/fingerprint.ts";
import type { OrderKey } from "../../ports/lane-store.ts";

/** As a header can carry it. */
const KEY = /^[ -~]{1,255}$/;

/** What an order says: its action and its words, in whichever order they were written. */
interface Words {
  /** As the caller names it; empty: the lane. */
  readonly subject: string;
  readonly action: string;
  readonly request: unknown;
}

/** Undefined: the order has no key, and a repeat of it is another order. */
export function parseOrderKey(key: unknown, { subject, action, request }: Words): OrderKey | undefined {
  if (key === undefined || key === null) return undefined;
  if (typeof key !== "string" || !KEY.test(key)) {
    throw invalid("idempotency-key", "must have 1 to 255 characters of printable ASCII");
  }
  return { subject, key, fingerprint: fingerprintOfJson([action, request]) };
}
