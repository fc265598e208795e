/**
 * Decides when a chain's refusal may end an accepted transaction. One endpoint is not enough: its zero balance or its
 * revert may be false, and an ended transaction is not restarted. Every other endpoint that is up must refuse the
 * transaction, too. If no other is up, the same one must refuse it again at a later block. Until then the transaction
 * waits, and blocks no other (I7).
 */

/**
 * Answer of one endpoint about a refused transaction. "behind": it has not reached the block of the refusal. "silent":
 * it counts as up and gave no answer this time.
 */
export type RefusalWord = "refuses" | "accepts" | "behind" | "silent";

/** A refusal that is not confirmed yet. */
export type RefusalWait = "laterBlock" | "agreement" | "behind" | "silent";

export interface UnconfirmedRefusal {
  readonly txId: string;
  readonly reason: string;
  /** Number of the newest block that this node knew at the first refusal. */
  readonly firstBlock: number;
  /** Number of the block at which the transaction is checked again. */
  readonly nextBlock: number;
  readonly looks: number;
  readonly waitsFor: RefusalWait;
  readonly since: Date;
}

/** Longest pause between checks, in blocks: an endpoint that keeps refusing is queried less and less often. */
const MOST_BLOCKS_APART = 8;

/**
 * Decides whether a refusal is confirmed. `words`: answers of every endpoint that is up. `block`: the newest block that
 * this node knows. `seen`: result of earlier checks.
 */
export function judgeRefusal(
  words: readonly RefusalWord[],
  block: number,
  seen: Pick<UnconfirmedRefusal, "firstBlock"> | null,
): "confirmed" | RefusalWait {
  if (words.includes("accepts")) return "agreement";
  if (words.length === 0 || words.includes("silent")) return "silent";
  if (words.includes("behind")) return "behind";
  return words.length > 1 || (seen !== null && block > seen.firstBlock) ? "confirmed" : "laterBlock";
}

/** State of a refusal after a check that did not confirm it. */
export function stillUnconfirmed(
  seen: UnconfirmedRefusal | null,
  look: Pick<UnconfirmedRefusal, "txId" | "reason" | "waitsFor" | "since"> & { readonly block: number },
): UnconfirmedRefusal {
  const { block, txId, reason, waitsFor } = look;
  const looks = (seen?.looks ?? 0) + 1;
  const nextBlock = block + Math.min(looks, MOST_BLOCKS_APART);
  const { firstBlock, since } = seen ?? { firstBlock: block, since: look.since };
  return { txId, reason, waitsFor, firstBlock, nextBlock, looks, since };
}
