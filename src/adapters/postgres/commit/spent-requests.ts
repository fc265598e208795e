/**
 * Spent request ids: retention removed their transactions, only their hashes are kept, and they are still refused. A
 * commit of two round trips looks them up behind the lane's lock. In a commit of one round trip the server proves that
 * there is none. No lane's lock covers a pool's request ids: for them the order counts, rows first, hashes after.
 */
import type { Lane } from "../../../domain/lane.ts";
import type { AskedOfPool, Spent } from "../../../ports/lane-store.ts";
import { proveUnspent, type SpentRow } from "../statements/spent-request.ts";
import type { Command } from "../statements/statement.ts";
import type { Plan } from "./plan.ts";

const SPENT: Spent = { spent: true };

/** A request id on its lane. */
export type Request = Lane & { readonly requestId: string };

export function requestOf({ chainId, signer }: Lane, requestId: string): Request {
  return { chainId, signer, requestId };
}

export function inLane({ chainId, signer, requestId }: Request): SpentRow {
  return { chainId, scope: signer, requestId };
}

export function inPool({ chainId, pool, requestId }: AskedOfPool): SpentRow {
  return { chainId, scope: `pool ${pool}`, requestId };
}

/** Looks a request id up among those that were found. */
export function spentIn(rows: readonly SpentRow[] = []) {
  const keys = new Set(rows.map(keyOf));
  return (request: SpentRow) => (keys.has(keyOf(request)) ? SPENT : null);
}

function keyOf({ chainId, scope, requestId }: SpentRow) {
  return JSON.stringify([chainId, scope, requestId]);
}

/**
 * For a transaction in one write. A lane of which nothing was removed has no hashes: its creates cost no look-up, and
 * the lane's proof shows that.
 */
export function unspent(plan: Plan, marker: string | null): readonly Command[] {
  if (marker === null) return [];
  const asked = plan.of("allocated").flatMap(
    ([
      {
        intent: { requestId, pool },
      },
      { ledger, row },
    ]) => {
      if (requestId === null) return [];
      const own = row.departedBelow === null ? [] : [inLane(requestOf(ledger.lane, requestId))];
      return pool === undefined ? own : [...own, inPool({ chainId: row.chainId, pool, requestId })];
    },
  );
  return asked.length === 0 ? [] : [proveUnspent(asked, marker)];
}
