import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isTaken, SUBMIT_ANSWERS, type SubmitAnswer, type TakenAnswer } from "../../../src/domain/chain/answers.ts";
import * as tx from "../../../src/domain/pace/transaction-pace.ts";
import { AT_ONCE, afterInterval, at, isDue, NEVER } from "../../../src/domain/pace/when.ts";

type Pace = tx.TransactionPace;

const NOW = 1_000;
const TAKEN_AT = { block: 7, ms: NOW };
const resumed = tx.resumedPace(1, false);
const looked = tx.looked(resumed, NOW);
const signed = tx.committed(tx.signedPace(1, "0x01"), tx.lookedAt(NOW));
const rejected = tx.refused(signed, "rejected", { nowMs: NOW, random: 0 });

describe("a scheduled time", () => {
  it.each([
    ["at once", AT_ONCE, 0, true],
    ["before its time", at(10), 9, false],
    ["at its time", at(10), 10, true],
    ["never", NEVER, Number.MAX_SAFE_INTEGER, false],
    ["after no interval at all", afterInterval(5, null), Number.MAX_SAFE_INTEGER, false],
    ["after an interval", afterInterval(5, 5), 10, true],
  ] as const)("is correctly classified as due or not yet due: %s", (_, when, nowMs, due) => {
    expect(isDue(when, nowMs)).toBe(due);
  });
});

describe("the next send of a transaction", () => {
  it.each<[string, Pace, boolean]>([
    ["signed, and not committed", tx.signedPace(1, "0x01"), false],
    ["signed and committed", signed, true],
    ["committed as a hash alone", tx.namedOnly(tx.signedPace(1, null)), false],
    ["resumed, and its receipt not looked up yet", resumed, false],
    ["resumed, and its receipt looked up", looked, true],
    ["resumed with a receipt", tx.looked(tx.resumedPace(1, true), NOW), false],
    ["resumed without an attempt to send", tx.looked(tx.resumedPace(null, false), NOW), false],
    ["being sent", tx.takenInHand(signed), false],
    ["no longer being sent", tx.laidDown(tx.takenInHand(signed)), true],
    ["accepted, before it is due again", tx.taken(signed, "accepted", at(NOW + 1), TAKEN_AT), false],
    ["accepted, and due again", tx.taken(signed, "accepted", at(NOW), TAKEN_AT), true],
    ["refused a moment ago", rejected, false],
    ["refused because its nonce is used up", tx.refused(signed, "nonceConsumed", { nowMs: 0, random: 0 }), false],
    ["mined", tx.mined(signed), false],
    ["withdrawn", tx.withdrawn(tx.mined(signed), 1, NOW), true],
    ["signed again", tx.signedAnew(rejected, { ordinal: 2, rawTransaction: "0x02" }, false), true],
    ["signed again, and mined meanwhile", tx.signedAnew(signed, { ordinal: 2, rawTransaction: "0x02" }, true), false],
    ["possibly sent by a chain node that returned no hash", tx.sightLost(signed, NOW), false],
    ["found again", tx.sightRegained(tx.sightLost(signed, NOW)), false],
    ["not found for the whole timeout", tx.sightGivenUp(tx.sightLost(signed, NOW)), true],
    ["due for a receipt look-up before it is sent", tx.lookOwed(signed), false],
    ["due for a receipt look-up", tx.lookWanted(signed), true],
    ["reset to be sent at once", tx.sentAfresh(rejected), true],
  ])("is correctly classified as due or not due if the transaction is %s", (_, pace, due) => {
    expect(tx.isSendDue(pace, NOW)).toBe(due);
  });

  it.each(SUBMIT_ANSWERS)("requires a price check only after an accepted or underpriced send (%s)", (answer) => {
    expect(tx.awaitsVerdict({ ...signed, answer })).toBe(isTaken(answer) || answer === "underpriced");
    expect(tx.awaitsVerdict(tx.judged({ ...signed, answer }))).toBe(false);
  });

  it("is due once the preceding nonce is mined if the nonce was too high", () => {
    const early = tx.refused(signed, "nonceTooHigh", { nowMs: NOW, random: 0.5 });
    expect(tx.predecessorMined(early).send).toBe(AT_ONCE);
    expect(tx.predecessorMined(rejected)).toBe(rejected);
  });

  it("requires reading the raw bytes again only if another attempt is sent", () => {
    expect(tx.turnedTo(signed, 2)).toMatchObject({ sendOrdinal: 2, rawTransaction: null });
    expect(tx.turnedTo(signed, 1)).toBe(signed);
  });
});

describe("submission refusals of a transaction", () => {
  it("are counted until an endpoint accepts the transaction", () => {
    const again = tx.refused(rejected, "rejected", { nowMs: NOW, random: 0 });
    expect(again).toMatchObject({ failures: 2, rejections: 2, claimed: false });
    expect(tx.refused(again, "unknown", { nowMs: NOW, random: 0 })).toMatchObject({ failures: 3, rejections: 0 });
    expect(tx.taken(again, "alreadyKnown", NEVER, TAKEN_AT)).toMatchObject({
      failures: 0,
      rejections: 0,
      rawTransaction: null,
    });
  });
});

describe("the order of receipt checks", () => {
  it("starts with required checks, followed by due checks", () => {
    const failed = (ms: number) => tx.lookFailed(resumed, ms);
    const inTurn = [resumed, tx.lookWanted(looked), tx.looked(resumed, 1), tx.looked(resumed, 2), failed(3), failed(4)];
    const shuffled = [4, 2, 5, 0, 3, 1].map((index) => inTurn[index] as Pace);
    expect(shuffled.sort(tx.byTurn)).toEqual(inTurn);
  });

  it("includes checks that last ran more than an interval ago", () => {
    expect([resumed, tx.lookWanted(looked), looked].map((pace) => tx.isLookDue(pace, NOW + 9, 10))).toEqual([
      true,
      true,
      false,
    ]);
    expect(tx.isLookDue(looked, NOW + 10, 10)).toBe(true);
  });

  it("keeps a required check as required if the check fails", () => {
    expect(tx.lookWanted(resumed)).toBe(resumed);
    expect(tx.lookFailed(resumed, NOW).look).toBe(tx.LOOK_OWED);
  });
});

describe("the search for a transaction that the endpoints no longer have", () => {
  it("starts when the transaction is first missed", () => {
    const lost = tx.sightLost(signed, NOW);
    expect(tx.searched(lost, NOW + 5).search).toEqual({ sinceMs: NOW, nextMs: NOW + 5 });
    expect(tx.searched(signed, NOW)).toBe(signed);
    expect(tx.sightGivenUp(lost)).toMatchObject({ search: null, answer: "unknown" });
  });
});

type Refusal = Exclude<SubmitAnswer, TakenAnswer>;
const REFUSALS = SUBMIT_ANSWERS.filter((answer): answer is Refusal => !isTaken(answer));
const ms = fc.nat(10_000);

/** Generates any event of a transaction, at any time, for sequences in any order. */
const event: fc.Arbitrary<(pace: Pace) => Pace> = fc.oneof(
  fc.constantFrom(
    tx.takenInHand,
    tx.laidDown,
    tx.claimed,
    tx.spent,
    tx.sentAfresh,
    tx.judged,
    tx.mined,
    tx.predecessorMined,
    tx.lookOwed,
    tx.lookWanted,
    tx.sightRegained,
    tx.sightGivenUp,
    tx.namedOnly,
  ),
  fc.tuple(fc.constantFrom(...REFUSALS), ms, fc.double({ min: 0, max: 0.999, noNaN: true })).map(
    ([answer, nowMs, random]) =>
      (pace: Pace) =>
        tx.refused(pace, answer, { nowMs, random }),
  ),
  ms.map((nowMs) => (pace: Pace) => tx.taken(pace, "accepted", at(nowMs), { block: 1, ms: nowMs })),
  ms.map((nowMs) => (pace: Pace) => tx.looked(pace, nowMs)),
  ms.map((nowMs) => (pace: Pace) => tx.lookFailed(pace, nowMs)),
  ms.map((nowMs) => (pace: Pace) => tx.withdrawn(pace, 1, nowMs)),
  ms.map((nowMs) => (pace: Pace) => tx.sightLost(pace, nowMs)),
  fc.tuple(fc.nat(5), fc.boolean()).map(
    ([ordinal, isMined]) =>
      (pace: Pace) =>
        tx.signedAnew(pace, { ordinal, rawTransaction: "0x02" }, isMined),
  ),
);

describe("the schedule of a transaction, after any events,", () => {
  it("always has the same fields", () => {
    const shape = Object.keys(resumed);
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        let pace = resumed;
        for (const happens of events) {
          const before = Object.freeze(pace);
          pace = happens(before);
          expect(Object.keys(pace)).toEqual(shape);
          expect(pace.failures - before.failures).toBeLessThanOrEqual(1);
          expect(pace.rejections - before.rejections).toBeLessThanOrEqual(pace.answer === "rejected" ? 1 : 0);
        }
      }),
    );
  });

  it("has no due send while a send is in progress", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), ms, (events, nowMs) => {
        const pace = events.reduce((before, happens) => happens(before), resumed);
        const may = !pace.inHand && pace.look.kind !== "owed" && pace.sendOrdinal !== null;
        expect(tx.isSendDue(pace, nowMs)).toBe(may && isDue(pace.send, nowMs));
        if (tx.isSendDue(pace, nowMs)) expect(tx.isSendDue(pace, nowMs + 1)).toBe(true);
        expect(tx.isSendDue(tx.mined(pace), nowMs)).toBe(false);
        expect(tx.isSendDue(tx.sightLost(pace, nowMs), nowMs)).toBe(false);
      }),
    );
  });

  it("has a total order of receipt checks", () => {
    const pace = fc
      .array(event, { maxLength: 8 })
      .map((events) => events.reduce((to, happens) => happens(to), resumed));
    fc.assert(
      fc.property(pace, pace, pace, (a, b, c) => {
        expect(Math.sign(tx.byTurn(a, b))).toBe(0 - Math.sign(tx.byTurn(b, a)));
        if (tx.byTurn(a, b) <= 0 && tx.byTurn(b, c) <= 0) expect(tx.byTurn(a, c)).toBeLessThanOrEqual(0);
      }),
    );
  });
});

describe("the right to send a transaction", () => {
  it("is used up by a send, an answer, a withdrawn receipt, and a lost sight", () => {
    const requested = tx.requestedSend(signed);
    const after = [
      tx.spent(requested),
      tx.taken(requested, "accepted", NEVER, TAKEN_AT),
      tx.refused(requested, "unknown", { nowMs: NOW, random: 0 }),
      tx.sightLost(requested, NOW),
    ];
    expect(after.map(({ claimed, sendRequested }) => [claimed, sendRequested])).toEqual(
      after.map(() => [false, false]),
    );
    expect(tx.withdrawn(signed, 1, NOW).claimed).toBe(false);
  });
});

describe("a transaction that an endpoint accepted", () => {
  it("is passed over once enough blocks and enough time went by since it was first accepted", () => {
    const again = tx.taken(tx.taken(signed, "accepted", NEVER, TAKEN_AT), "accepted", NEVER, {
      block: 9,
      ms: NOW + 900,
    });
    const least = { blocks: 2, ms: 1_000 };
    const isPassedOver = (block: number, ms: number) => tx.isPassedOver(again, { block, ms }, least);
    expect(tx.isPassedOver(signed, { block: 99, ms: NOW + 99_000 }, least), "never accepted").toBe(false);
    expect([isPassedOver(8, NOW + 1_000), isPassedOver(9, NOW + 999), isPassedOver(9, NOW + 1_000)]).toEqual([
      false,
      false,
      true,
    ]);
  });
});
