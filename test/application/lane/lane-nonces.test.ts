import { expect, it } from "vitest";
import { LaneNonces } from "../../../src/application/lane/lane-nonces.ts";
import { apply } from "../../../src/domain/ledger/index.ts";
import { LONGEST_TTL_MS } from "../../../src/domain/transaction/reservations.ts";
import { FENCE, LANE } from "../../domain/ledger/story.ts";
import { BY_ANYBODY } from "../../support/lane-samples.ts";
import { newLedger } from "../../support/whole-ledger.ts";

// protects [Reservations] src/domain/ledger/reserve.ts, src/application/lane/lane-nonces.ts
it("a reservation with an implausible remaining time is checked after the longest permitted time", () => {
  const reservation = { reservationId: "mine", requestId: null, floor: 0, ttlMs: 60_000, ...BY_ANYBODY } as const;
  const { ledger } = apply(newLedger(LANE), { kind: "reserve", fence: FENCE, ...reservation }, new Date(0));
  const nonces = new LaneNonces(() => ledger, [{ reservationId: "mine", nonce: 0, leftMs: 3_660_000 }]);
  expect(nonces.isDue(0)).toBe(false);
  expect(nonces.isDue(LONGEST_TTL_MS - 1)).toBe(false);
  expect(nonces.isDue(LONGEST_TTL_MS)).toBe(true);
});
