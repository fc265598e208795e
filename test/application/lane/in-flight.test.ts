/**
 * Which transactions of a lane are due to be sent again, and how far above the lane's lowest open transaction the node
 * may send.
 */

import { describe, expect, it } from "vitest";
import { Activity } from "../../../src/application/lane/activity.ts";
import type { OwnedLane } from "../../../src/application/lane/owned-lane.ts";
import { happened, type Tracked } from "../../../src/application/lane/tracked.ts";
import { SUBMIT_ANSWERS, type SubmitAnswer } from "../../../src/domain/chain/answers.ts";
import { futureRefused, futureTaken } from "../../../src/domain/pace/lane-pace.ts";
import { at } from "../../../src/domain/pace/when.ts";
import { createOwnedLane } from "../../support/chain-bench.ts";
import { due, mineIn, paced, receiptOf } from "../../support/stage-bench.ts";

const MIDDLE = 0.5;

function laneOf(...transactions: readonly Tracked[]): OwnedLane {
  const lane = createOwnedLane();
  for (const tx of transactions) lane.track(tx);
  return lane;
}

function answered(nonce: number, answer: SubmitAnswer | null): Tracked {
  return paced(due(nonce), { answer });
}

const nonces = (list: readonly Tracked[]) => list.map(({ nonce }) => nonce);

describe("an in-flight transaction whose next check is due", () => {
  const judged: readonly SubmitAnswer[] = ["accepted", "alreadyKnown", "underpriced"];

  it.each(SUBMIT_ANSWERS)("is either broadcast again or checked for its fee after the response %s", (answer) => {
    const lane = laneOf(answered(1, answer));
    expect(nonces(lane.toJudge(0))).toEqual(judged.includes(answer) ? [1] : []);
    expect(nonces(lane.toSend(0, 10))).toEqual(judged.includes(answer) ? [] : [1]);
  });

  it("is broadcast again if there was no response", () => {
    const lane = laneOf(answered(1, null));
    expect(nonces(lane.toSend(0, 10))).toEqual([1]);
    expect(lane.toJudge(0)).toEqual([]);
  });

  it("is checked in nonce order", () => {
    const lane = laneOf(answered(3, "accepted"), answered(1, "underpriced"), answered(2, "accepted"));
    expect(nonces(lane.toJudge(0))).toEqual([1, 2, 3]);
  });

  it("starts only the background job for that check", async () => {
    const woken: string[] = [];
    const lane = laneOf(paced(answered(1, "accepted"), { send: at(0) }));
    const waking = (who: string) =>
      new Activity(
        async () => void woken.push(who),
        () => undefined,
      );
    const others = { broadcasting: waking("sender"), tending: waking("judge"), expiring: waking("timer") };
    lane.activities = { signing: waking("signer"), ...others };
    lane.kickDue(-1);
    await lane.settled();
    expect(woken).toEqual([]);
    lane.kickDue(0);
    await lane.settled();
    expect(woken).toEqual(["judge"]);
    lane.track(due(2));
    lane.kickDue(0);
    await lane.settled();
    expect(woken.toSorted()).toEqual(["judge", "judge", "sender"]);
  });
});

describe("the send window for a node that refuses future nonces", () => {
  it("opens when the node accepts one more nonce", () => {
    const lane = laneOf(due(1), due(2), due(3), due(4));
    expect(lane.openWindow(64, 0)).toBe(64);
    happened(lane, futureRefused, { nowMs: 0, random: MIDDLE });
    expect(lane.openWindow(64, 0)).toBe(1);
    expect(nonces(lane.toSend(0, 10))).toEqual([1]);
    expect(nonces(lane.toSend(2_000, 10))).toEqual([1, 2]);
    expect(lane.openWindow(64, 2_000)).toBe(2);
    happened(lane, futureTaken);
    expect(nonces(lane.toSend(2_000, 10))).toEqual([1, 2, 3, 4]);
  });

  it("is tested less and less often while it stays closed", () => {
    const lane = laneOf(due(1));
    const waits: number[] = [];
    let nowMs = 0;
    for (let i = 0; i < 12; i++) {
      happened(lane, futureRefused, { nowMs, random: MIDDLE });
      const closedMs = nowMs;
      while (lane.openWindow(64, nowMs) === 1) nowMs += 100;
      waits.push(nowMs - closedMs);
    }
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(waits[0]).toBeLessThan(2_500);
    expect(waits.at(-1)).toBeGreaterThan(400_000);
    expect(waits.at(-1)).toBeLessThanOrEqual(600_000);
  });

  it("treats a whole batch of refusals as a single refusal", () => {
    const lane = laneOf(due(1));
    for (let i = 0; i < 60; i++) happened(lane, futureRefused, { nowMs: 0, random: MIDDLE });
    expect(lane.openWindow(64, 2_000)).toBe(2);
  });

  it("moves up when the lowest open transaction is mined", () => {
    const next = paced(answered(2, "nonceTooHigh"), { send: at(1_000_000) });
    const head = answered(1, "accepted");
    const lane = laneOf(head, next);
    happened(lane, futureRefused, { nowMs: 0, random: MIDDLE });
    mineIn(lane, head, receiptOf(1, { number: 1, hash: "0x01" }));
    expect(nonces(lane.toSend(0, 10))).toEqual([2]);
  });
});

it("a lane counts the pending transactions above a nonce", () => {
  const lane = laneOf(due(1), due(2), due(5));
  expect([lane.pendingBehind(1), lane.pendingBehind(4), lane.pendingBehind(5)]).toEqual([2, 1, 0]);
});
