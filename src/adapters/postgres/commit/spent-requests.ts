/**
 * Spent request ids: retention has removed their transactions, but keeps hashes of the ids, so that they are still
 * refused. A commit of two round trips looks them up while the lane is locked. In a commit of one round trip, the
 * server verifies that none of its ids is spent. A pool's request ids are not protected by any lane's lock. For them
 * the order of reads matters: first the rows, then the hashes.
 */
import type { Lane } from "../../../domain/lane.ts";
import type { AskedOfPool, Spent } from "../../../ports/lane-store.ts";
import { proveUnspent, type SpentRow } from "../statements/spent-request.ts";
import type { Command } from "../statements/statement.ts";
import type { Plan } from "./plan.ts";

const SPENT: Spent = { spent: true };

/** A request id together with its lane. */
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

/** Request ids of messages are apart from those of transactions. */
export function inMessages({ chainId, signer, requestId }: Request): SpentRow {
  return { chainId, scope: `sign ${signer}`, requestId };
}

/** Makes a function that looks a request id up among the spent ones that were read. */
export function spentIn(rows: readonly SpentRow[] = []) {
  const keys = new Set(rows.map(keyOf));
  return (request: SpentRow) => (keys.has(keyOf(request)) ? SPENT : null);
}

function keyOf({ chainId, scope, requestId }: SpentRow) {
  return JSON.stringify([chainId, scope, requestId]);
}

/**
 * Statement that verifies, in a commit of one round trip, that no request id is spent. A lane from which retention
 * removed nothing has no hashes, so its creates need no look-up; the statement that verifies the lane (`proveLanes`)
 * confirms that.
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
