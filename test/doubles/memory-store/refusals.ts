import { TRANSITIONS, type TransitionRule } from "../../../src/domain/transitions.ts";
import { BatchRefused, type TransitionItem } from "../../../src/ports/lane-store.ts";

/** What PostgreSQL's CHECK constraints say about a history row, said by the table they mirror. */
export function refuseIllegal(item: TransitionItem): void {
  const rule: TransitionRule = TRANSITIONS[item.event];
  const legal =
    rule.from.includes(item.from) &&
    (rule.to === "same" ? item.to === item.from : rule.to.state === item.to && rule.to.subState === item.subState);
  if (!legal) throw new BatchRefused(`${item.event} ${item.from} → ${item.to}/${item.subState ?? "-"} is not legal`);
}

/** PostgreSQL holds no NUL, neither in text nor in jsonb. */
export function refuseNul(...texts: readonly (string | null | undefined)[]): void {
  for (const text of texts) {
    if (text?.includes("\0") || text?.includes("\\u0000")) throw new BatchRefused("NUL cannot be stored");
  }
}
