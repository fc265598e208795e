import type { Draft } from "./draft.ts";
import type { LedgerOutcome, UnwatchWrite } from "./writes.ts";

/** Settled, and mined at or below the block: past its watch. */
export function unwatch(draft: Draft, { throughBlock }: UnwatchWrite): LedgerOutcome {
  for (const [block, all] of draft.ledger.watched.through(throughBlock)) {
    for (const each of all) draft.record({ kind: "unwatched", ...each, block });
  }
  return { status: "done" };
}
