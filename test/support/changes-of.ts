import type { Change } from "../../src/domain/ledger/index.ts";
import type { LaneWrite, TransitionItem, WriteOutcome } from "../../src/ports/lane-store.ts";

const AT = new Date(0);

/**
 * The changes to the lane that a database would report together with this outcome of a write, for tests that replace
 * the database.
 */
export function changesOf(write: LaneWrite, outcome: WriteOutcome): readonly Change[] {
  if (outcome.status === "applied" && write.kind === "transition") {
    return write.items.filter((_, index) => outcome.items[index] === "applied").map(moved);
  }
  if (outcome.status === "reconciled") {
    const { cursor, suspendedBy } = outcome;
    return [{ kind: "cursor", cursor }, { kind: "suspension", suspendedBy }, { kind: "reconciliation" }];
  }
  if (outcome.status === "allocated" && write.kind === "allocate") {
    return outcome.items.flatMap((result, index) => {
      const intent = write.items[index]?.intent;
      if (result.result !== "created" || intent === undefined) return [];
      return [{ kind: "allocated", intent, nonce: result.nonce, intake: null, at: result.createdAt }];
    });
  }
  return outcome.status === "aligned" ? [{ kind: "cursor", cursor: outcome.cursor }] : [];
}

function moved(item: TransitionItem): Change {
  const { accepted, attempt } = item;
  const acceptedOrdinal = accepted?.ordinal ?? null;
  const left = { nonce: item.nonce ?? null, live: true, attemptCount: attempt?.ordinal ?? 1, acceptedOrdinal };
  return { kind: "moved", item, ...left, step: 1, repeats: false, at: AT };
}
