/** Each event of a pace, with all fields that it changes: an event that changes more would make a timer forget. */
import { describe, expect, it } from "vitest";
import { NO_DOUBT } from "../../../src/domain/chain/doubt.ts";
import * as counts from "../../../src/domain/pace/count-events.ts";
import * as lane from "../../../src/domain/pace/lane-pace.ts";
import * as time from "../../../src/domain/pace/lane-time.ts";
import * as tx from "../../../src/domain/pace/transaction-pace.ts";
import { AT_ONCE, at, NEVER, type When } from "../../../src/domain/pace/when.ts";

const NEW = lane.NEW_LANE_PACE;
const DAY = new Date(0);

const away = lane.signerFailed(NEW, { nowMs: 0, now: DAY, random: 0, reason: "silent", lies: false });
const atHead = lane.headSeen(NEW, { nonce: 4, stuck: false, ageMs: 0, sends: 1 }, 10);
const AT_HEAD = { kind: "at", nonce: 4, sinceMs: 10, seenMs: 10, sentBefore: 1, blocks: false, stuck: false } as const;
const overdue = time.overdueSeen(NEW, ["a", "b"]);
const claimed = counts.countClaimed(NEW, 7, 100);
const counted = (changes: Partial<lane.CountPace>) => ({ counts: { ...NEW.counts, ...changes } });

const SEEN = { stuck: false, ageMs: 0, sends: 1 };
const STANDING = { head: 1, atBlock: 2, count: null, dueMs: 3 };
const closed = (untilMs: number, closures: number) => ({ kind: "closed", untilMs, closures }) as const;
const overdueAt = (when: When) =>
  new Map([
    ["a", when],
    ["b", AT_ONCE],
  ]);

describe("an event of a lane", () => {
  it.each<[string, lane.LanePace, () => lane.LanePace, Partial<lane.LanePace>]>([
    ["next comparison with the chain set", NEW, () => lane.comparisonSet(NEW, 5), { reconcileAtMs: 5 }],
    [
      "chain's check owed",
      { ...NEW, lookOwed: false },
      () => lane.chainLookOwed({ ...NEW, lookOwed: false }),
      { lookOwed: true },
    ],
    ["head stuck", atHead, () => lane.headStuck(atHead, 4), { head: { ...AT_HEAD, stuck: true } }],
    [
      "too many reserved nonces no longer",
      { ...NEW, pileSaid: true },
      () => lane.pileSeen({ ...NEW, pileSaid: true }, false),
      { pileSaid: false },
    ],
    ["comparison failed", NEW, () => lane.compared(NEW, "no answer"), { uncompared: "no answer" }],
    ["consumed nonce not shown by any endpoint", NEW, () => lane.externalUseUnseen(NEW, 5), { externalLook: at(5) }],
    ["nothing open any more", atHead, () => lane.headSeen(atHead, null, 20), { head: { kind: "none" } }],
    ["repairs limited", NEW, () => lane.repairsLimited(NEW, 5), { nextRepair: at(5) }],
    ["too many reserved nonces", NEW, () => lane.pileSeen(NEW, true), { pileSaid: true }],
    ["hole passed by the chain", NEW, () => lane.holesPassed(NEW, [3], 9), { passedHoles: new Map([[3, 9]]) }],
    ["blocked by a hole", NEW, () => lane.blockedBy(NEW, 3, 9), { blocking: { nonce: 3, sinceMs: 9 } }],
    ["window closed", NEW, () => lane.futureRefused(NEW, { nowMs: 0, random: 0 }), { window: closed(1_000, 1) }],
    ["signer unable to pay", NEW, () => lane.paymentFailed(NEW, DAY), { unpaidSince: DAY }],
    ["chain's count read", NEW, () => lane.countSeen(NEW, 5), { usedBelow: 5, holeLookOwed: false }],
    ["time limit asked for", NEW, () => time.expiryLookDue(NEW), { expiry: AT_ONCE }],
    [
      "time limits answered",
      time.expiryLookDue(NEW),
      () => time.expiryAsked(time.expiryLookDue(NEW)),
      { expiry: NEVER },
    ],
    ["time limits over", NEW, () => time.overdueSeen(NEW, ["a", "b"]), { overdue: overdueAt(AT_ONCE) }],
    ["no time limit left", overdue, () => time.overdueSeen(overdue, []), { overdue: new Map() }],
    ["cancel put off", overdue, () => time.cancelPutOff(overdue, "a", 5), { overdue: overdueAt(at(5)) }],
    ["cancel done", overdue, () => time.overdueDone(overdue, "a"), { overdue: new Map([["b", AT_ONCE]]) }],
    ["count claimed", NEW, () => claimed, counted({ claim: { count: 7, atBlock: 100 } })],
    ["claim judged", claimed, () => counts.claimJudged(claimed), counted({ claim: null })],
    ["count reported", NEW, () => counts.countReported(NEW, 6), counted({ reported: 6 })],
    ["check set", NEW, () => counts.checkSet(NEW, { nonce: 1, dueMs: 2 }), counted({ check: { nonce: 1, dueMs: 2 } })],
    ["head stands", NEW, () => counts.headStands(NEW, STANDING), counted({ standing: STANDING })],
    ["batch failed", NEW, () => counts.batchFailed(NEW), counted({ failures: 1 })],
  ])("changes its own fields only: %s", (_, before, event, changes) => {
    expect(event()).toEqual({ ...before, ...changes });
  });

  it.each<[string, lane.LanePace, (pace: lane.LanePace) => lane.LanePace]>([
    ["a check of the chain that is owed already", NEW, lane.chainLookOwed],
    ["the same reason of a failed comparison", NEW, (pace) => lane.compared(pace, null)],
    ["no open transaction, as before", lane.headSeen(atHead, null, 20), (pace) => lane.headSeen(pace, null, 30)],
    ["the same open transaction", atHead, (pace) => lane.headSeen(pace, { ...SEEN, nonce: 4 }, 30)],
    ["an open window", NEW, lane.futureTaken],
    ["a payment that nothing hindered", NEW, lane.paid],
    ["a second failed payment", lane.paymentFailed(NEW, DAY), (pace) => lane.paymentFailed(pace, new Date(1))],
    ["an answer of a signer that is there", NEW, lane.signerAnswered],
    ["the failure of a signer that is there, as another node saw it", NEW, (pace) => lane.signerAwaySince(pace, DAY)],
    ["a look at holes that is owed already", NEW, lane.holeLookDue],
    ["as few reserved nonces as before", NEW, (pace) => lane.pileSeen(pace, false)],
    ["an open transaction that is not at the head", atHead, (pace) => lane.headStuck(pace, 5)],
    ["no hole that blocks, as before", NEW, lane.unblocked],
    ["the same hole that blocks", lane.blockedBy(NEW, 3, 9), (pace) => lane.blockedBy(pace, 3, 10)],
    ["no time limit, as before", NEW, (pace) => time.overdueSeen(pace, [])],
    ["the same claimed count", claimed, (pace) => counts.countClaimed(pace, 7, 101)],
    ["an unproved count without a claim", NEW, (pace) => counts.claimUnproved(pace, DAY)],
  ])("that tells nothing new leaves the pace as it is: %s", (_, before, event) => {
    expect(event(before)).toBe(before);
  });

  it("that another node saw first sets since when the signer is away", () => {
    const since = new Date(-5);
    expect(lane.signerAwaySince(away, since)).toEqual({ ...away, signer: { ...away.signer, since } });
  });

  it("keeps the searches of the nonces that are still looked at, except those that found something", () => {
    const look = (pace: lane.LanePace, nonces: readonly number[], found: readonly number[], atMs: number) =>
      lane.callersLookedFor(pace, { nonces, found: new Set(found), atMs });
    const twice = look(look(NEW, [1, 2, 3], [], 10), [2, 3, 4], [3], 30);
    expect([...twice.searches]).toEqual([
      [2, { sinceMs: 10, lastMs: 30 }],
      [4, { sinceMs: 30, lastMs: 30 }],
    ]);
  });
});

describe("the time limits of a lane", () => {
  it("are due if one may have passed, or if a cancel is due", () => {
    const none = time.expiryAsked(NEW);
    expect(time.isTimeDue(none, 1e9)).toBe(false);
    expect([4, 5].map((nowMs) => time.isTimeDue({ ...none, expiry: at(5) }, nowMs))).toEqual([false, true]);
    const putOff = time.cancelPutOff(none, "a", 5);
    expect([4, 5].map((nowMs) => time.isTimeDue(putOff, nowMs))).toEqual([false, true]);
    expect([none, time.expiryLookDue(NEW)].map(time.isExpiryLookOwed)).toEqual([false, true]);
  });

  it("are asked for at once if they have passed, and not moved back", () => {
    expect(time.expiryAhead(time.expiryAsked(NEW), 10, -5).expiry).toEqual(at(10));
    const set = time.expiryAhead(time.expiryAsked(NEW), 10, 5);
    expect(time.expiryAhead(set, 10, 5)).toBe(set);
    const owed = time.expiryLookDue(NEW);
    expect(time.expiryAhead(owed, 10, 5)).toBe(owed);
  });
});

it("the chain may have used every nonce below the highest count of any kind", () => {
  const highest = (proven: number, reported: number, usedBelow: number) =>
    counts.usedBelow({ ...NEW, ...counted({ proven, reported }), usedBelow });
  expect([highest(3, 2, 1), highest(1, 3, 2), highest(2, 1, 3)]).toEqual([3, 3, 3]);
});

it("a lane is unsure of its chain while a check is owed or evidence against it counts", () => {
  const sure = { ...NEW, lookOwed: false };
  expect(lane.isUnsure(sure)).toBe(false);
  expect(lane.isUnsure({ ...sure, lookOwed: true })).toBe(true);
  expect(lane.isUnsure({ ...sure, doubt: { ...NO_DOUBT } })).toBe(true);
});

const TAKEN_AT = { block: 7, ms: 1_000 };
const signed = tx.committed(tx.signedPace(1, "0x01"), tx.lookedAt(0));
const requested = tx.requestedSend(signed);
const taken = tx.taken(requested, "accepted", at(5), TAKEN_AT);
const refused = tx.refused(requested, "rejected", { nowMs: 0, random: 0 });
const lost = tx.sightLost(requested, 9);
const SEARCH = { sinceMs: 1, nextMs: 2 };

const FIRST_SIGNED = { sendOrdinal: 1, rawTransaction: "0x01", claimed: true, look: tx.LOOK_DUE } as const;
const SENT = { claimed: false, rawTransaction: null, sendRequested: false };
const ACCEPTED_AFTER: Partial<tx.TransactionPace> = {
  ...{ ...SENT, answer: "alreadyKnown", send: NEVER, takenAt: TAKEN_AT },
  ...{ failures: 0, rejections: 0 },
};
const REFUSED = { claimed: false, failures: 1, sendRequested: false };
const CONSUMED = { ...REFUSED, answer: "nonceConsumed", send: at(500), look: tx.LOOK_OWED } as const;
const WITHDRAWN = {
  ...{ rawTransaction: null, claimed: false, answer: null, takenAt: null, failures: 0 },
  ...{ sendOrdinal: 2, send: AT_ONCE, look: tx.lookedAt(9) },
};
const LOOKED = { look: tx.lookedAt(4), lookFailedMs: null };
const LOST = { send: NEVER, claimed: false, sendRequested: false };
const ANEW: Partial<tx.TransactionPace> = {
  ...{ sendOrdinal: 2, rawTransaction: "0x02", claimed: true, answer: null, takenAt: null },
  ...{ failures: 0, rejections: 0, gasJudgedAt: null },
};
const anew = (isMined: boolean) =>
  tx.signedAnew({ ...refused, takenAt: TAKEN_AT, gasJudgedAt: 1 }, { ordinal: 2, rawTransaction: "0x02" }, isMined);

describe("an event of a transaction", () => {
  it.each<[string, tx.TransactionPace, () => tx.TransactionPace, Partial<tx.TransactionPace>]>([
    ["signed", tx.resumedPace(null, true), () => tx.signedPace(1, "0x01"), FIRST_SIGNED],
    [
      "resumed",
      tx.signedPace(2, null),
      () => tx.resumedPace(2, false),
      { claimed: false, send: AT_ONCE, look: tx.LOOK_OWED },
    ],
    ["committed", tx.signedPace(1, "0x01"), () => signed, { send: AT_ONCE, look: tx.lookedAt(0) }],
    ["known by its hash alone", signed, () => tx.namedOnly(signed), { sendOrdinal: null, claimed: false }],
    ["accepted before", signed, () => tx.takenBefore(signed, at(5)), { answer: "alreadyKnown", send: at(5) }],
    ["in hand", signed, () => tx.takenInHand(signed), { inHand: true }],
    ["laid down", tx.takenInHand(signed), () => tx.laidDown(tx.takenInHand(signed)), { inHand: false }],
    ["claimed", tx.resumedPace(1, false), () => tx.claimed(tx.resumedPace(1, false)), { claimed: true }],
    ["bytes read", signed, () => tx.bytesRead(signed, "0x02"), { rawTransaction: "0x02" }],
    ["right to send used up", requested, () => tx.spent(requested), { claimed: false, sendRequested: false }],
    ["accepted", requested, () => taken, { ...SENT, answer: "accepted", send: at(5), takenAt: TAKEN_AT }],
    ["accepted after refusals", refused, () => tx.taken(refused, "alreadyKnown", NEVER, TAKEN_AT), ACCEPTED_AFTER],
    ["rejected", requested, () => refused, { ...REFUSED, answer: "rejected", send: at(2_500), rejections: 1 }],
    ["nonce consumed", requested, () => tx.refused(requested, "nonceConsumed", { nowMs: 0, random: 0 }), CONSUMED],
    ["another attempt", taken, () => tx.turnedTo(taken, 2), { sendOrdinal: 2, rawTransaction: null, takenAt: null }],
    ["scheduled", taken, () => tx.scheduled(taken, at(9)), { send: at(9) }],
    ["sent afresh", refused, () => tx.sentAfresh(refused), { answer: null, send: AT_ONCE, failures: 0 }],
    ["send requested", signed, () => requested, { sendRequested: true }],
    ["judged", taken, () => tx.judged(taken), { answer: null }],
    ["gas judged", refused, () => tx.gasJudged(refused, 1), { gasJudgedAt: 1 }],
    ["mined", signed, () => tx.mined(signed), { send: NEVER, rawTransaction: null }],
    ["receipt withdrawn", refused, () => tx.withdrawn({ ...refused, takenAt: TAKEN_AT }, 2, 9), WITHDRAWN],
    ["receipt check owed", taken, () => tx.lookOwed(taken), { look: tx.LOOK_OWED }],
    ["receipt check wanted", taken, () => tx.lookWanted(taken), { look: tx.LOOK_DUE }],
    ["looked", tx.lookFailed(taken, 3), () => tx.looked(tx.lookFailed(taken, 3), 4), LOOKED],
    ["look failed", taken, () => tx.lookFailed(taken, 3), { lookFailedMs: 3 }],
    ["sight lost", requested, () => lost, { ...LOST, search: { sinceMs: 9, nextMs: 9 } }],
    ["search begun before", signed, () => tx.searchBegun(signed, SEARCH), { search: SEARCH }],
    ["searched", lost, () => tx.searched(lost, 12), { search: { sinceMs: 9, nextMs: 12 } }],
    [
      "sight regained",
      lost,
      () => tx.sightRegained(lost),
      { answer: "alreadyKnown", send: AT_ONCE, look: tx.LOOK_OWED },
    ],
    ["sight given up", lost, () => tx.sightGivenUp(lost), { answer: "unknown", send: AT_ONCE, search: null }],
    ["signed anew", { ...refused, takenAt: TAKEN_AT, gasJudgedAt: 1 }, () => anew(false), { ...ANEW, send: AT_ONCE }],
    [
      "signed anew once mined",
      { ...refused, takenAt: TAKEN_AT, gasJudgedAt: 1 },
      () => anew(true),
      { ...ANEW, send: NEVER },
    ],
  ])("changes its own fields only: %s", (_, before, event, changes) => {
    expect(event()).toEqual({ ...before, ...changes });
  });
});

describe("a node's refusal of a transaction", () => {
  it.each([
    ["unknown", 125, 250],
    ["nonceTooHigh", 125, 250],
    ["nonceConsumed", 500, 1_000],
    ["underpriced", 1_000, 2_000],
    ["insufficientFunds", 1_000, 2_000],
    ["rejected", 2_500, 5_000],
  ] as const)("is followed by a pause that doubles: %s", (answer, first, second) => {
    const once = tx.refused(signed, answer, { nowMs: 10, random: 0 });
    expect(once.send).toEqual(at(10 + first));
    expect(tx.refused(once, answer, { nowMs: 10, random: 0 }).send).toEqual(at(10 + second));
  });
});

describe("receipt checks", () => {
  const failed = (ms: number) => tx.lookFailed(taken, ms);

  it.each([
    ["the one without a response later", failed(0), taken, 1],
    ["the one with a response earlier", taken, failed(0), -1],
    ["the one that failed first earlier", failed(1), failed(3), -1],
    ["the oldest first", tx.looked(taken, 3), tx.looked(taken, 1), 1],
    ["the required one before the wanted one", tx.lookOwed(taken), tx.lookWanted(taken), -1],
    ["the wanted one before the others", taken, tx.lookWanted(taken), 1],
  ] as const)("run in turn: %s", (_, a, b, sign) => {
    expect(Math.sign(tx.byTurn(a, b))).toBe(sign);
  });
});
