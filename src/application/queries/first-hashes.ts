import type { Hash } from "../../domain/lane.ts";
import { isSettled } from "../../domain/transaction/transitions.ts";
import { within } from "../../ports/clock.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Waiting } from "../api.ts";

/** Interval of the reads: signing usually takes a few milliseconds. */
const LOOK_EVERY_MS = 20;

/**
 * Waits for the hash of a transaction's first attempt, for callers on any node: reads the first attempts from the
 * database until the transaction is signed. One read serves all waiting callers, so two hundred cost as much as one.
 * Null if the transaction was not signed in time, or ended unsigned.
 */
export function firstHashes({ clock, store }: Pick<Ports, "clock" | "store">) {
  const waiting = new Set<{ readonly txId: string; resolve(hash: Hash | null): void }>();
  let isLooking = false;
  const look = async () => {
    isLooking = true;
    while (waiting.size > 0) {
      await clock.sleep(LOOK_EVERY_MS);
      // If the database does not answer, the callers continue to wait until their time-out.
      const rows = await store.firstHashes([...new Set([...waiting].map(({ txId }) => txId))]).catch(() => []);
      const over = new Map(
        rows.flatMap(({ txId, txHash, state }) => (txHash || isSettled(state) ? [[txId, txHash]] : [])),
      );
      for (const each of waiting) {
        const hash = over.get(each.txId);
        if (hash !== undefined) each.resolve(hash);
      }
    }
    isLooking = false;
  };
  return async (txId: string, { withinMs, signal }: Waiting): Promise<Hash | null> => {
    if (withinMs <= 0 || signal?.aborted) return null;
    let leave = () => {};
    const hash = new Promise<Hash | null>((resolve) => {
      const each = { txId, resolve };
      const giveUp = () => resolve(null);
      waiting.add(each);
      signal?.addEventListener("abort", giveUp, { once: true });
      leave = () => {
        waiting.delete(each);
        signal?.removeEventListener("abort", giveUp);
      };
    });
    if (!isLooking) void look();
    return within(clock, hash, { ms: withinMs, late: () => null }).finally(leave);
  };
}
