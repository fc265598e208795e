import type { Lane } from "../../src/domain/lane.ts";
import {
  bareLedger,
  type Change,
  foldInto,
  type Guard,
  type Ledger,
  nothingUsed,
  Part,
} from "../../src/domain/ledger/index.ts";
import type { Policies } from "../../src/domain/policy/policy.ts";
import { UNUSED } from "../../src/domain/policy/use.ts";

const ALL = { kind: "all" } as const;

/** The ledger's policy state (guard), completely loaded, with these policies and without any usage. */
export function unusedGuard(policies: Policies): Guard {
  return { ...(whole(nothingUsed(policies)) as Guard), use: UNUSED };
}

/** A complete ledger of a lane for which nothing was ever written. */
export function newLedger({ chainId, signer }: Lane): Ledger {
  const bare = bareLedger({ chainId, signer }, { cursor: null, suspendedBy: null, reconciled: true });
  const facts = { mayHaveLost: false, endedThrough: null, epochFloor: 0, repairs: [] };
  const { intake, pooled } = bare;
  return { ...(whole(bare) as Ledger), ...facts, intake, pooled };
}

/** Applies changes in the order in which they were committed. */
export function fold(ledger: Ledger, changes: readonly Change[]): Ledger {
  const folded = { ...ledger };
  for (const change of changes) foldInto(folded, change);
  return folded;
}

function whole(parts: object): object {
  const covering = Object.entries(parts).map(([name, each]) => [
    name,
    each instanceof Part ? each.covering(ALL, []) : each,
  ]);
  return Object.fromEntries(covering);
}
