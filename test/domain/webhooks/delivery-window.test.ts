import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Lane } from "../../../src/domain/lane.ts";
import { DeliveryWindow, WINDOW } from "../../../src/domain/webhooks/delivery-window.ts";

interface Sample {
  readonly seq: number;
  readonly lane: Lane;
}

const lane = (n: number): Lane => ({ chainId: 1, signer: `0x${n.toString(16).padStart(40, "0")}` });
const outcome = (seq: number, ofLane = 0): Sample => ({ seq, lane: lane(ofLane) });
const fresh = (position = 0) => new DeliveryWindow<Sample>({ position, done: [], failingSince: null });
const AT = new Date("2026-11-02T09:30:00.000Z");
const failure = (nowMs = 0, pause = 1_000) => ({ nowMs, now: AT, pauseMs: (failures: number) => failures * pause });
const taken = (window: DeliveryWindow<Sample>, nowMs = 0) => {
  const found: Sample[] = [];
  for (let next = window.take(nowMs); next !== null; next = window.take(nowMs)) found.push(next);
  return found.map(({ seq }) => seq);
};

describe("the window of deliveries", () => {
  it("has at most one outcome of a lane on its way, the lowest first", () => {
    const window = fresh();
    window.admit([outcome(1), outcome(2), outcome(3, 1)], 3);
    expect(taken(window)).toEqual([1, 3]);
    window.delivered(outcome(1));
    expect(taken(window)).toEqual([2]);
  });

  it("moves the position over what is delivered or filtered out, and never over a gap", () => {
    const window = fresh(10);
    window.admit([outcome(12), outcome(14, 1)], 20);
    taken(window);
    window.delivered(outcome(14, 1));
    expect(window.progress).toEqual({ position: 11, done: [14] });
    window.delivered(outcome(12));
    expect(window.progress).toEqual({ position: 20, done: [] });
    expect(window.isEmpty).toBe(true);
  });

  it("has each outcome once, though pages of the feed overlap", () => {
    const window = fresh();
    window.admit([outcome(1)], 2);
    window.admit([outcome(1), outcome(3, 1)], 3);
    window.admit([], 2);
    expect([window.through, taken(window)]).toEqual([3, [1, 3]]);
    window.delivered(outcome(1));
    expect(taken(window)).toEqual([]);
  });

  it("has lanes with fewer failures first, and is failing since the first of them", () => {
    const window = fresh();
    window.admit([outcome(1), outcome(2, 1)], 2);
    expect(taken(window)).toEqual([1, 2]);
    const later = { ...failure(), now: new Date(AT.getTime() + 1) };
    for (const each of [failure(), later]) {
      window.failed(outcome(1), each);
    }
    window.failed(outcome(2, 1), later);
    expect(window.failingSince).toEqual(AT);
    expect(taken(window, 10_000)).toEqual([2, 1]);
  });

  it("does not deliver again what was delivered above the stored position", () => {
    const window = new DeliveryWindow<Sample>({ position: 4, done: [6], failingSince: AT });
    window.admit([outcome(5), outcome(6, 1), outcome(7, 2)], 7);
    expect(taken(window)).toEqual([5, 7]);
    expect(window.failingSince).toEqual(AT);
    window.delivered(outcome(5));
    expect(window.failingSince).toBeNull();
    expect(window.progress).toEqual({ position: 6, done: [] });
  });

  it("has a lane that failed wait alone, with lanes that did not fail before it", () => {
    const window = fresh();
    window.admit([outcome(1), outcome(2, 1)], 2);
    expect(window.take(0)).toEqual(outcome(1));
    window.failed(outcome(1), failure());
    expect(window.failingSince).toEqual(AT);
    expect(window.dueMs).toBe(1_000);
    expect(taken(window, 999)).toEqual([2]);
    expect(taken(window, 1_000)).toEqual([1]);
    window.failed(outcome(1), failure(1_000));
    expect(window.dueMs).toBe(3_000);
    window.retryAll();
    expect(window.take(1_000)).toEqual(outcome(1));
  });

  it("is full with as many outcomes as may be repeated after a crash", () => {
    const window = fresh();
    window.admit(
      Array.from({ length: WINDOW }, (_, at) => outcome(at + 1, at === 0 ? 0 : 1)),
      WINDOW,
    );
    expect(window.room).toBe(0);
    window.take(0);
    window.take(0);
    window.delivered(outcome(2, 1));
    expect(window.room).toBe(0);
    window.delivered(outcome(1));
    expect(window.room).toBe(2);
  });

  // protects [Webhooks] src/domain/webhooks/delivery-window.ts
  it("delivers everything, in order per lane, whatever fails and whenever its owner dies", () => {
    const step = fc.record({ deliver: fc.boolean(), crash: fc.nat(9), lane: fc.nat(3), wanted: fc.nat(4) });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 120 }), fc.nat(5), (steps, storeEvery) => {
        const feed = steps.map(({ lane, wanted }, at) => ({ ...outcome(at + 1, lane), isWanted: wanted > 0 }));
        const arrived: number[] = [];
        let stored = { position: 0, done: [] as readonly number[] };
        let window = fresh();
        const read = () => {
          const page = feed.filter(({ seq }) => seq > window.through).slice(0, 7);
          window.admit(
            page.filter(({ isWanted }) => isWanted),
            page.at(-1)?.seq ?? window.through,
          );
        };
        let nowMs = 0;
        for (const [at, { deliver, crash }] of [...steps, ...steps].entries()) {
          read();
          nowMs += 1_000;
          const next = window.take(nowMs);
          if (next !== null && deliver) {
            arrived.push(next.seq);
            window.delivered(next);
          } else if (next !== null) window.failed(next, failure(nowMs, 1));
          if (at % (storeEvery + 1) === 0) stored = window.progress;
          if (crash === 0) window = new DeliveryWindow<Sample>({ ...stored, failingSince: null });
        }
        while (window.through < feed.length) read();
        for (let next = window.take(1e9); next !== null; next = window.take(1e9)) {
          arrived.push(next.seq);
          window.delivered(next);
        }
        const first = [...new Set(arrived)];
        const wanted = feed.filter(({ isWanted }) => isWanted);
        expect([...first].sort((a, b) => a - b)).toEqual(wanted.map(({ seq }) => seq));
        for (const of of [0, 1, 2, 3]) {
          const own = first.filter((seq) => feed[seq - 1]?.lane.signer === lane(of).signer);
          expect(own).toEqual([...own].sort((a, b) => a - b));
        }
        expect(window.progress).toEqual({ position: feed.length, done: [] });
      }),
    );
  });
});
