import { expect, it } from "vitest";
import { apply, type Ledger, type LedgerWrite } from "../../../src/domain/ledger/index.ts";
import { anAttempt, anIntent, BY_ANYBODY } from "../../support/lane-samples.ts";
import { newLedger } from "../../support/whole-ledger.ts";
import { FENCE, LANE } from "./story.ts";

const NOW = new Date(0);
const after = (ledger: Ledger, ...writes: readonly LedgerWrite[]) =>
  writes.reduce((each, write) => apply(each, write, NOW).ledger, ledger);
const reserve = (reservationId: string, ttlMs: number) =>
  ({ kind: "reserve", fence: FENCE, floor: 0, reservationId, requestId: null, ttlMs, ...BY_ANYBODY }) as const;
const fill = (nonce: number, reservationId: string): LedgerWrite => ({
  kind: "bind",
  fence: FENCE,
  nonce,
  intent: anIntent(LANE),
  attempt: anAttempt(),
  reason: "test",
  reservation: { reservationId, becomes: "EXPIRED" },
});

it("a transaction that fills a nonce hole is recorded only in the expired reservation that left the hole", () => {
  const ledger = after(newLedger(LANE), reserve("late", 0), reserve("released", 60_000), reserve("open", 60_000));
  const gone = after(
    ledger,
    { kind: "expire", fence: FENCE },
    { kind: "release", fence: FENCE, reservationId: "released" },
  );
  const filled = after(gone, fill(0, "late"), fill(1, "released"));
  expect(filled.reservations.get("late")).toMatchObject({ state: "EXPIRED", txId: filled.nonces.get(0) });
  expect(filled.reservations.get("released"), "it was released, and stays so").toMatchObject({
    state: "RELEASED",
    txId: null,
  });
  const other = after(gone, fill(0, "open"));
  expect(other.reservations.get("open"), "it is open still, at a nonce of its own").toMatchObject({
    state: "RESERVED",
  });
  expect(other.reserved.get(2)).toBe("open");
});

it("a lane's next nonce is never lowered to a nonce whose reservation expired without a release", () => {
  const expired = after(newLedger(LANE), reserve("late", 0), { kind: "expire", fence: FENCE });
  const closed = after(expired, { kind: "closeHoles", fence: FENCE, nonces: [0] });
  expect(after(closed, { kind: "realign", fence: FENCE, floor: 0 }).cursor).toBe(1);
  const released = after(newLedger(LANE), reserve("mine", 1), { kind: "release", fence: FENCE, reservationId: "mine" });
  expect(after(released, { kind: "realign", fence: FENCE, floor: 0 }).cursor).toBe(0);
});

it("the expiry of a reservation is checked against a separate clock value, not against the time that the write stores", () => {
  const later = new Date(NOW.getTime() + 20);
  const kept = after(newLedger(LANE), reserve("mine", 10));
  const release = { kind: "release", fence: FENCE, reservationId: "mine" } as const;
  expect(apply(kept, release, NOW).outcome).toMatchObject({ result: "settled" });
  expect(apply(kept, release, { at: NOW, past: later }).outcome).toMatchObject({ result: "conflict", hole: null });
  const expired = apply(kept, { kind: "expire", fence: FENCE }, { at: NOW, past: later });
  expect(expired.outcome).toMatchObject({ holes: [{ nonce: 0, since: NOW }] });
});

// protects [Reservations] src/domain/ledger/reserve.ts, src/application/lane/lane-nonces.ts
it("a reservation counts as expired if its end is implausibly far in the future", () => {
  const kept = after(newLedger(LANE), reserve("mine", 60_000));
  const holesAt = (ms: number) => {
    const { outcome } = apply(kept, { kind: "expire", fence: FENCE }, { at: NOW, past: new Date(ms) });
    return outcome;
  };
  expect(holesAt(-59_000), "a little back").toMatchObject({ holes: [] });
  expect(holesAt(-3_600_000)).toMatchObject({ holes: [{ nonce: 0, why: "expired" }] });
});
