import type { Draft } from "./draft.ts";
import type { LedgerOutcome } from "./fates.ts";
import type { UnwatchWrite } from "./writes.ts";

/** Settled, and mined at or below the block: past its watch. */
export function unwatch(draft: Draft, { throughBlock }: UnwatchWrite): LedgerOutcome {
  const { watched, transactions } = draft.ledger;
  for (const [block, txIds] of watched.through(throughBlock)) {
    for (const { txId, state } of txIds.flatMap((each) => transactions.get(each) ?? [])) {
      draft.record({ kind: "unwatched", txId, state, block });
    }
  }
  return { status: "done" };
}
