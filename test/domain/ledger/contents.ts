import type { KeptLedger, Ledger, LedgerOutcome } from "../../../src/domain/ledger/index.ts";

/** The whole content of a ledger as plain data: two ledgers are equal if their contents are. */
export function contentsOf(ledger: Ledger): Record<string, unknown> {
  const { lane, cursor, suspendedBy, reconciled, endedThrough } = ledger;
  const { transactions, nonces, live, fixed, watched, requests, holes, reservations, reserved, reservedAs } = ledger;
  const parts = { transactions, nonces, live, fixed, watched, requests, holes, reservations, reserved, reservedAs };
  const rows = Object.entries(parts).map(([name, part]) => [name, [...part.known()]]);
  return { lane, cursor, suspendedBy, reconciled, endedThrough, ...Object.fromEntries(rows) };
}

/** The ledger's outcome as a string, in the format that the naive model (naive-lane.ts) uses. */
export function wordsOf(outcome: LedgerOutcome): string {
  switch (outcome.status) {
    case "allocated":
      return outcome.items
        .map((item) => {
          if (item.result === "created") return `created ${item.nonce}`;
          if (item.result === "held" && item.unreadable === true) return "unreadable";
          if (item.result === "duplicate") return `${item.samePayload ? "again" : "reused"} ${item.existing.txId}`;
          return item.result;
        })
        .join();
    case "applied":
      return outcome.items.join();
    case "aligned":
      return `at ${outcome.cursor}`;
    case "reconciled":
      return `at ${outcome.cursor}, ${outcome.suspendedBy}`;
    case "done":
      return "done";
    case "reserved": {
      const { result } = outcome;
      if (result.result === "created") return `reserved ${result.reservation.nonce}`;
      if (result.result === "existing")
        return `existing ${result.reservation.reservationId} ${result.reservation.state}`;
      return result.result === "requestTaken" ? `taken by ${result.txId}` : result.result;
    }
    case "message":
    case "released":
      return outcome.result;
    case "bound":
      return `${outcome.result} ${outcome.requestId}`;
    case "expired":
    case "skipped":
      return `holes ${outcome.holes.map(({ nonce }) => nonce)}`;
  }
}

/** An owner's in-memory ledger as plain data for comparison: two trees with the same rows may have different shapes. */
export function rowsOf({ holes, reserved, ...row }: KeptLedger) {
  return { ...row, holes: holes.every(), reserved: reserved.every() };
}
