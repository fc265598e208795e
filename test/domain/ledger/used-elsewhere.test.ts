/** Nonces that the chain has used, and this lane has not: another program signs with the key. */
import { describe, expect, it } from "vitest";
import { apply, type Ledger, type LedgerWrite } from "../../../src/domain/ledger/index.ts";
import { anAttempt, anIntent } from "../../support/lane-samples.ts";
import { newLedger } from "../../support/whole-ledger.ts";
import { FENCE, LANE } from "./story.ts";

const NOW = new Date(0);
const done = (ledger: Ledger, write: object) => apply(ledger, { fence: FENCE, ...write } as LedgerWrite, NOW);
const allocate = (floor: number, requestId: string) => ({
  ...{ kind: "allocate", floor },
  items: [{ intent: anIntent(LANE, { requestId }) }],
});
const two = done(done(newLedger(LANE), allocate(0, "one")).ledger, allocate(0, "two")).ledger;
const uses = (ledger: Ledger, write: object) =>
  done(ledger, write).changes.flatMap((change) =>
    change.kind === "usedElsewhere" ? { nonce: change.nonce, through: change.through } : [],
  );

const reserve = (floor: number) => ({
  ...{ kind: "reserve", floor, reservationId: "kept", requestId: null, owner: null },
  ...{ ttlMs: 1, most: 9 },
});
const bind = (nonce: number, floor: number) => ({
  ...{ kind: "bind", nonce, chosen: { floor } },
  ...{ intent: anIntent(LANE), attempt: anAttempt(), reason: "r" },
});

describe("nonces that the chain passed and the lane never gave", () => {
  it.each([
    ["an allocation", allocate(5, "three")],
    ["a reservation", reserve(5)],
    ["an alignment", { kind: "align", floor: 5 }],
    ["a payload that its caller signed", bind(5, 5)],
  ])("are recorded with the write that brings the count: %s", (_, write) => {
    expect(uses(two, write)).toEqual([{ nonce: 2, through: 4 }]);
  });

  it.each([
    ["the count is the lane's own", two, allocate(2, "three")],
    ["the lane is new", newLedger(LANE), allocate(5, "three")],
    ["the write uses no nonce", two, allocate(5, "two")],
    ["the database may have lost what was sent", { ...two, reconciled: false }, { kind: "reconcile", floor: 5 }],
    ["the nonce was filled that the lane left", two, { ...bind(0, 0), chosen: undefined }],
  ])("are not recorded if %s", (_, ledger, write) => {
    expect(uses(ledger, write)).toEqual([]);
  });
});
