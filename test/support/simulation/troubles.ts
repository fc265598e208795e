import { expect } from "vitest";
import { TRANSACTION_FAILPOINTS } from "../nonce-failpoints.ts";
import type { Played } from "./play.ts";

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
    "stopped: everything",
    "stopped: kill",
    "stopped: signer",
    "stopped: transaction",
  ];
  const crashes = TRANSACTION_FAILPOINTS.map((name) => `crashed at ${name}`);
  for (const trouble of [...troubles, ...crashes]) expect(counts[trouble] ?? 0, trouble).toBeGreaterThan(0);
}
