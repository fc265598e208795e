/**
 * When a refusal of the chain may end what was accepted. One endpoint's word is not enough: its balance of zero, or its
 * revert, may be a lie, and what has ended is not begun again. Every other endpoint that is up has to refuse the
 * transaction, too; where no other is up, the same one has to refuse it again at a later block. Until then the
 * transaction waits, and nothing else waits for it (I7).
 */

/**
 * One endpoint's word on a transaction that was refused. "behind": it answers, and has not come to the block that the
 * refusal was met at. "silent": it is up as far as is known, and gave no answer this time.
 */
export type RefusalWord = "refuses" | "accepts" | "behind" | "silent";

/** The answer that a refusal waits for. */
export type RefusalWait = "laterBlock" | "agreement" | "behind" | "silent";

export interface UnconfirmedRefusal {
  readonly txId: string;
  readonly reason: string;
  /** Followed when it was first refused. */
  readonly firstBlock: number;
  /** Not looked at again before this block. */
  readonly nextBlock: number;
  readonly looks: number;
  readonly waitsFor: RefusalWait;
  readonly since: Date;
}

/** So many blocks apart at most: an endpoint that lies for good is asked less and less often. */
const MOST_BLOCKS_APART = 8;

/** `words`: of every endpoint that is up. `block`: followed now; `seen`: the looks before this one. */
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

/** After one more look that confirmed nothing. */
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
