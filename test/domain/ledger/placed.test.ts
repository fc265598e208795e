/** Transactions that are placed at a reserved nonce or in a nonce gap, in one write with their signature. */
import { describe, expect, it } from "vitest";
import { apply, type Ledger, type LedgerWrite, Part } from "../../../src/domain/ledger/index.ts";
import { anAttempt, anIntent, BY_ANYBODY } from "../../support/lane-samples.ts";
import { newLedger } from "../../support/whole-ledger.ts";
import { FENCE, LANE } from "./story.ts";

const HOUR_MS = 3_600_000;
const NOW = new Date(100 * HOUR_MS);
const done = (ledger: Ledger, write: object) => apply(ledger, { fence: FENCE, ...write } as LedgerWrite, NOW);
const reserve = (reservationId: string, ttlMs: number) => ({
  ...{ kind: "reserve", floor: 0, reservationId, requestId: null, ttlMs },
  ...BY_ANYBODY,
});
const start = [reserve("first", 0), reserve("second", 0), { kind: "expire" }, reserve("open", HOUR_MS)].reduce(
  (ledger, write) => done(ledger, write).ledger,
  newLedger(LANE),
);
const bind = (nonce: number, reservation: object | undefined, ledger = start) =>
  done(ledger, {
    ...{ kind: "bind", nonce, intent: anIntent(LANE), attempt: anAttempt(), reason: "r" },
    ...(reservation === undefined ? {} : { reservation }),
  });
const expired = (reservationId: string, more: object = {}) => ({ reservationId, becomes: "EXPIRED", ...more });
const kindsOf = (applied: ReturnType<typeof done>) => applied.changes.map(({ kind }) => kind);

describe("a transaction at a reserved nonce", () => {
  it("closes a gap only if its reservation has expired", () => {
    const used = (reservationId: string) => ({ reservationId, becomes: "SUBMITTED" });
    expect(kindsOf(bind(2, used("open")))).toEqual(["reservationSettled", "allocated", "moved"]);
    expect(kindsOf(bind(0, used("first")))).toEqual(["holeClosed", "reservationSettled", "allocated", "moved"]);
  });

  it("needs no request ids to be loaded if it has none", () => {
    const requests: Ledger["requests"] = Part.of("request id", { kind: "named" });
    expect(bind(0, undefined, { ...start, requests }).outcome).toMatchObject({ result: "settled", requestId: null });
  });
});

describe("a placeholder in the gap of an expired reservation", () => {
  it("is named by the reservation that left the gap, and by no other", () => {
    expect(bind(0, expired("first")).ledger.reservations.get("first")?.txId).not.toBeNull();
    expect(bind(0, expired("second")).ledger.reservations.get("second")?.txId).toBeNull();
  });

  it.each([
    ["without a limit, whatever was loaded", {}, undefined, "settled"],
    ["of one, after none", { mostPerHour: 1 }, [], "settled"],
    ["of one, after one in this hour", { mostPerHour: 1 }, [NOW], "limited"],
    ["of one, after one at the end of the last hour", { mostPerHour: 1 }, [new Date(NOW.getTime() - 1)], "settled"],
    ["of two, after one", { mostPerHour: 2 }, [NOW], "settled"],
    ["of none", { mostPerHour: 0 }, [], "limited"],
  ] as const)("is counted by the hour: %s", (_, limit, repairs, result) => {
    const placed = bind(0, expired("first", limit), { ...start, repairs });
    expect(placed.outcome).toMatchObject({ result });
    const isCounted = result === "settled" && "mostPerHour" in limit;
    expect(placed.ledger.repairs?.length).toBe(isCounted ? (repairs?.length ?? 0) + 1 : repairs?.length);
  });
});
