import { expect } from "vitest";
import { MESSAGE_FAILPOINTS, TRANSACTION_FAILPOINTS } from "../nonce-failpoints.ts";
import { DRAWN } from "./places.ts";
import type { Played } from "./play.ts";

/** Least number of each kind in 200 seeds, for the kinds that would prove little if they came once. */
const OFTEN: Readonly<Record<string, number>> = {
  "outcome delivered": 400,
  "outcome delivered again": 20,
  "outcome delivered to a limited key": 100,
  "delivery unanswered": 5,
  "subscriber taken over": 50,
  "subscriber replayed": 5,
  "epoch delivered": 5,
  "signature made": 100,
  "signature answered": 100,
  "signature AWAITING_APPROVAL": 10,
  "signature beyond its window": 5,
  "signature refused: FORBIDDEN": 50,
  "request id of another message": 20,
  ...Object.fromEntries(
    ["anybody", "builder", "careful", "costly", "daily", "nightly", "rich", "shop"].map((key) => [
      `spent by ${key}`,
      5,
    ]),
  ),
  "spending beyond a window": 10,
};

/** Checks that enough faults of every kind occurred: otherwise the run proves nothing. */
export function expectTrouble(counts: Played["counts"]): void {
  const troubles = [
    "takeover",
    "fenced",
    "reorg",
    "REORGED",
    "FAILED_FINAL",
    "STUCK",
    "base fee moved",
    "reprice",
    "cancel",
    "replace",
    "expired",
    "expired after it was sent",
    "held back",
    "unknown to the caller",
    "history changed",
    "history in doubt",
    "calls unheard",
    "refused",
    "signer away",
    "fees lied about",
    "priced at the ceiling",
    "above the ceiling",
    "lied about gas",
    "gas lowered",
    "lied for good",
    "lied about receipts",
    "receipts in dispute",
    "invented blocks",
    "sent one by one",
    "clock jumped",
    "commit delayed",
    "commits lost",
    "database clock jumped",
    ...["silent", "slow", "lostRequest", "lostReply", "refused"].map((kind) => `nodes apart: ${kind}`),
    ...["balances", "reverts", "newest tags", "missing tags", "old state", "one URL for two"].map(
      (what) => `lied about ${what}`,
    ),
    "stopped: everything",
    "stopped: kill",
    "stopped: signer",
    "stopped: transaction",
    "delivery answered 410",
    "delivery answered 429",
    "delivery answered 500",
    "signature REJECTED",
    "signature EXPIRED",
    "approve answered",
    "reject answered",
    ...["chains", "to", "selectors", "hours", "arguments.to", "arguments.amount", "requireApproval"].map(
      (rule) => `spending refused: key.${rule}`,
    ),
    "spending refused: key.maxValue.perTransaction",
    "spending refused: key.maxCost.perTransaction",
    "spending refused: signer.to",
  ];
  const crashes = [...TRANSACTION_FAILPOINTS, ...MESSAGE_FAILPOINTS].map((name) => `crashed at ${name}`);
  for (const trouble of [...troubles, ...crashes, ...DRAWN.values()])
    expect(counts[trouble] ?? 0, trouble).toBeGreaterThan(0);
  for (const [trouble, least] of Object.entries(OFTEN))
    expect(counts[trouble] ?? 0, trouble).toBeGreaterThanOrEqual(least);
}
