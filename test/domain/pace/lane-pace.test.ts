import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NO_DOUBT } from "../../../src/domain/chain/doubt.ts";
import {
  batchFailed,
  claimUnproved,
  countClaimed,
  countCompared,
  countReported,
} from "../../../src/domain/pace/count-events.ts";
import * as lane from "../../../src/domain/pace/lane-pace.ts";
import {
  cancelPutOff,
  expiryAhead,
  expiryAsked,
  expiryLookDue,
  overdueNow,
  overdueSeen,
} from "../../../src/domain/pace/lane-time.ts";

const NEW = lane.NEW_LANE_PACE;
const NOW = 1_000;
const head = (nonce: number, stuck = false, ageMs = 0, sends = 1) => ({ nonce, stuck, ageMs, sends });

describe("a lane that a node has just acquired", () => {
  it("must have its chain checked", () => {
    expect(lane.isUnsure(NEW)).toBe(true);
    expect(lane.openNonces(NEW, 0)).toBeNull();
    expect(NEW).toMatchObject({
      head: { kind: "not looked" },
      holeLookOwed: true,
      unpaidSince: null,
    });
  });
});

describe("the check of an endpoint's chain", () => {
  it("stops the lane after finding evidence of a wrong chain twice", () => {
    let pace = NEW;
    const seen = ["once", "twice", null, null].map((evidence) => {
      pace = lane.chainJudged(pace, evidence, NOW);
      return pace;
    });
    expect(seen.map(({ distrust }) => distrust)).toEqual(["once", "twice", "twice", null]);
    expect(seen.map((pace) => lane.isUnsure(pace))).toEqual([true, true, true, false]);
    expect(seen.map(({ doubt }) => doubt.stopped)).toEqual([false, true, true, false]);
  });

  it("restores the trust in the chain if nothing wrong is found", () => {
    const trusted = lane.chainJudged(NEW, null, NOW);
    expect(trusted).toMatchObject({ lookOwed: false, nextLook: { kind: "at", ms: NOW }, doubt: NO_DOUBT });
    expect(lane.isUnsure(lane.chainLookOwed(trusted))).toBe(true);
    expect(lane.chainLookOwed(NEW)).toBe(NEW);
  });

  it("stores a reason for distrust exactly while evidence of a wrong chain counts", () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.constantFrom("one", "other"))), (sights) => {
        const pace = sights.reduce<lane.LanePace>((to, sight) => lane.chainJudged(to, sight, NOW), NEW);
        expect(pace.distrust === null).toBe(pace.doubt === NO_DOUBT);
      }),
    );
  });
});

describe("the lowest open transaction of a lane", () => {
  it("keeps its age under a new owner", () => {
    const first = lane.headSeen(NEW, head(1, false, 400), NOW);
    expect(first.head).toMatchObject({ nonce: 1, sinceMs: NOW - 400, seenMs: NOW });
    const next = lane.headSeen(first, head(2, false, 900), NOW + 5);
    expect(next.head).toMatchObject({ nonce: 2, sinceMs: NOW + 5, seenMs: NOW + 5 });
    const none = lane.headSeen(next, null, NOW + 6);
    expect(lane.headSeen(none, head(3, false, 900), NOW + 7).head).toMatchObject({ sinceMs: NOW + 7 });
  });

  it("restarts its stuck timer after a repair", () => {
    const stuck = lane.headSeen(NEW, head(1, true, 400), NOW);
    expect(lane.headSeen(stuck, head(1, true), NOW + 5)).toBe(stuck);
    const repaired = lane.headSeen(stuck, head(1), NOW + 5);
    expect(repaired.head).toMatchObject({ sinceMs: NOW + 5, seenMs: NOW, stuck: false });
    expect(lane.headSeen(repaired, head(1, true), NOW + 9).head).toMatchObject({ sinceMs: NOW + 5, stuck: true });
  });

  // protects [Explained, and said aloud] src/application/loops/tend.ts, src/domain/pace/lane-pace.ts
  it("has a count of sends that starts anew with its stuck timer", () => {
    expect(lane.headSeen(NEW, head(1, false, 400, 9), NOW).head).toMatchObject({ sentBefore: 1 });
    const first = lane.headSeen(NEW, head(1, false, 0, 0), NOW);
    expect(first.head).toMatchObject({ sentBefore: 0 });
    const next = lane.headSeen(first, head(2, false, 0, 7), NOW);
    expect(next.head).toMatchObject({ sentBefore: 7 });
    const stuck = lane.headSeen(next, head(2, true, 0, 12), NOW);
    expect(stuck.head).toMatchObject({ sentBefore: 7 });
    expect(lane.headSeen(stuck, head(2, false, 0, 13), NOW).head).toMatchObject({ sentBefore: 13 });
  });

  // protects [Explained, and said aloud] src/application/detours/another-attempt.ts
  it("restarts its stuck timer even after a repair between two checks", () => {
    const seen = lane.headSeen(NEW, head(1, false, 400, 5), NOW);
    const stuck = lane.headStuck(seen, 1);
    expect(lane.headSeen(stuck, head(1, false, 0, 6), NOW + 5).head).toMatchObject({ sinceMs: NOW + 5, sentBefore: 6 });
    expect(lane.headStuck(seen, 2)).toBe(seen);
    expect(lane.headStuck(NEW, 1)).toBe(NEW);
  });

  it("is reported only once for blocking other transactions", () => {
    const reported = lane.blockReported(lane.headSeen(NEW, head(1), NOW));
    expect(lane.headSeen(reported, head(1), NOW + 1).head).toMatchObject({ blocks: true });
    expect(lane.headSeen(reported, head(2), NOW + 1).head).toMatchObject({ blocks: false });
    expect(lane.blockReported(NEW)).toBe(NEW);
  });
});

describe("the send window of a lane", () => {
  const refuse = (pace: lane.LanePace, nowMs: number) => lane.futureRefused(pace, { nowMs, random: 0.5 });

  it("shrinks to one nonce if an endpoint refuses a future nonce", () => {
    const closed = refuse(NEW, 0);
    expect([0, 1_499, 1_500].map((nowMs) => lane.openNonces(closed, nowMs))).toEqual([1, 1, 2]);
    expect(refuse(closed, 10)).toBe(closed);
    expect(lane.openNonces(lane.futureTaken(closed), 0)).toBeNull();
    expect(lane.futureTaken(NEW)).toBe(NEW);
  });

  it("stays closed longer with each further refusal", () => {
    const again = refuse(refuse(NEW, 0), 1_500);
    expect(again.window).toEqual({ kind: "closed", untilMs: 4_500, closures: 2 });
  });
});

describe("the alert about missing funds", () => {
  it("is raised once, until an endpoint accepts a payload again", () => {
    const [first, later] = [new Date(1), new Date(2)];
    const poor = lane.paymentFailed(NEW, first);
    expect(lane.paymentFailed(poor, later).unpaidSince).toBe(first);
    expect(lane.paid(poor).unpaidSince).toBeNull();
    expect(lane.paid(NEW)).toBe(NEW);
  });
});

describe("nonce holes of a lane", () => {
  it("are stored with the block at which the chain's transaction count first exceeded them", () => {
    const passed = lane.holesPassed(lane.holesPassed(NEW, [1, 2], 10), [2, 3], 20).passedHoles;
    expect([...passed]).toEqual([
      [2, 10],
      [3, 20],
    ]);
  });

  it("that block the lane are stored with the time of the first check", () => {
    const blocked = lane.blockedBy(NEW, 4, 100);
    expect(lane.blockedBy(blocked, 4, 200)).toBe(blocked);
    expect(lane.blockedBy(blocked, 5, 200).blocking).toEqual({ nonce: 5, sinceMs: 200 });
    expect(lane.unblocked(blocked).blocking).toBeNull();
  });

  it("must be checked again after a higher nonce was mined", () => {
    const seen = lane.countSeen(NEW, 7);
    expect(seen).toMatchObject({ usedBelow: 7, holeLookOwed: false });
    expect(lane.holeLookDue(seen).holeLookOwed).toBe(true);
    expect(lane.countSeen(NEW, -1).usedBelow).toBe(0);
  });
});

describe("a signer that is away", () => {
  const fail = (pace: lane.LanePace, nowMs: number, lies = false) =>
    lane.signerFailed(pace, { nowMs, now: new Date(nowMs), random: 1, reason: "silent", lies });

  it("is asked later after each failure, up to a limit", () => {
    const first = fail(NEW, NOW);
    const second = fail(first, NOW + 500);
    expect([first, second].map(({ signer }) => signer)).toMatchObject([
      { untilMs: NOW + 500 },
      { untilMs: NOW + 1_500 },
    ]);
    expect([499, 500].map((ms) => lane.signerAwaited(first, NOW + ms))).toEqual(["silent", null]);
    expect(lane.signerAwaited(lane.signerAnswered(second), NOW)).toBeNull();
  });

  it("is away since its first failure, or since it began to return wrong signatures", () => {
    const silent = fail(fail(NEW, 1), 2);
    expect(silent.signer).toMatchObject({ since: new Date(1), lies: false });
    expect(fail(silent, 3, true).signer).toMatchObject({ since: new Date(3), lies: true });
  });
});

describe("the time until something expires", () => {
  it("ends at the earliest expiry, and after a minute at the latest", () => {
    const soon = expiryAhead(expiryAsked(NEW), NOW, 500);
    expect(soon.expiry).toEqual({ kind: "at", ms: NOW + 500 });
    expect(expiryAhead(soon, NOW, 900)).toBe(soon);
    expect(expiryAhead(soon, NOW, 100).expiry).toEqual({ kind: "at", ms: NOW + 100 });
    expect(expiryAhead(expiryAsked(NEW), NOW, 3_600_000).expiry).toEqual({ kind: "at", ms: NOW + 60_000 });
    expect(expiryAhead(expiryLookDue(NEW), NOW, 500).expiry).toEqual({ kind: "at once" });
  });

  it("is not forgotten for a cancel that was put off", () => {
    const waiting = cancelPutOff(overdueSeen(NEW, ["a", "b"]), "a", NOW + 5);
    const again = overdueSeen(waiting, ["a", "c"]);
    expect([NOW, NOW + 5].map((nowMs) => overdueNow(again, nowMs))).toEqual([["c"], ["a", "c"]]);
  });
});

describe("the chain's transaction count of a lane", () => {
  const { counts } = NEW;

  it("is not compared by an answer that was requested before a batch failed", () => {
    const failed = batchFailed(countCompared(NEW, { proven: 5, askedAtMs: NOW, after: counts.failures }));
    expect(failed.counts).toMatchObject({ comparedAtMs: null, proven: 5 });
    const late = countCompared(failed, { proven: 3, askedAtMs: NOW, after: counts.failures });
    expect(late.counts).toMatchObject({ comparedAtMs: null, proven: 5 });
    const higher = countCompared(failed, { proven: 9, askedAtMs: NOW, after: counts.failures });
    expect(higher.counts).toMatchObject({ comparedAtMs: null, proven: 9 });
    const fresh = countCompared(failed, { proven: 3, askedAtMs: NOW, after: failed.counts.failures });
    expect(fresh.counts).toMatchObject({ comparedAtMs: NOW, proven: 3 });
  });

  it("that is not proven yet is claimed since its first block and its first time", () => {
    const claimed = countClaimed(countClaimed(NEW, 7, 100), 7, 105);
    expect(claimed.counts.claim).toEqual({ count: 7, atBlock: 100 });
    const unproved = claimUnproved(claimUnproved(claimed, new Date(1)), new Date(2));
    expect(unproved.counts.unproved).toEqual({ count: 7, since: new Date(1) });
    expect([6, 7].map((reported) => countReported(unproved, reported, 6).counts.unproved === null)).toEqual([
      true,
      false,
    ]);
    expect(countReported(unproved, 0).counts.unproved, "without a next nonce").not.toBeNull();
    expect(claimUnproved(NEW, new Date(1))).toBe(NEW);
  });
});
