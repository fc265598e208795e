import { describe, expect, it } from "vitest";
import { clockContract } from "../contracts/clock.contract.ts";
import { createManualClock } from "./manual-clock.ts";

clockContract("manual", () => {
  const clock = createManualClock();
  return { clock, drive: (ms) => clock.advance(ms) };
});

describe("the manual clock", () => {
  it("moves only when advanced, and exactly by the given time", async () => {
    const clock = createManualClock();
    clock.after(7, () => undefined);
    await clock.advance(10);
    expect(clock.monotonicMs()).toBe(10);
    expect(clock.now().toISOString()).toBe("2026-01-01T00:00:00.010Z");
  });

  it("shows each timer callback the time at which the timer was due", async () => {
    const clock = createManualClock();
    const seen: number[] = [];
    clock.after(30, () => seen.push(clock.monotonicMs()));
    clock.after(10, () => seen.push(clock.monotonicMs()));
    await clock.advance(1000);
    expect(seen).toEqual([10, 30]);
  });

  it("fires timers with the same due time in the order they were set", async () => {
    const clock = createManualClock();
    const calls: string[] = [];
    await clock.advance(3);
    clock.after(5, () => calls.push("a"));
    clock.after(2, () => clock.after(3, () => calls.push("c")));
    clock.after(5, () => calls.push("b"));
    await clock.advance(5);
    expect(calls).toEqual(["a", "b", "c"]);
  });

  it("lets promise chains settle between two timers", async () => {
    const clock = createManualClock();
    const log: string[] = [];
    const chain = async (name: string, ms: number) => {
      await clock.sleep(ms);
      for (let i = 0; i < 50; i++) await undefined;
      log.push(name);
    };
    void chain("first", 1);
    void chain("second", 1);
    clock.after(2, () => log.push("third"));
    await clock.advance(2);
    expect(log).toEqual(["first", "second", "third"]);
  });

  it("fires a timer set by a callback if it is due within the same advance", async () => {
    const clock = createManualClock();
    const seen: number[] = [];
    const tick = () => {
      seen.push(clock.monotonicMs());
      clock.after(10, tick);
    };
    clock.after(10, tick);
    await clock.advance(35);
    expect(seen).toEqual([10, 20, 30]);
    expect(clock.nextDueMs).toBe(40);
  });

  it("runs until no timer is left, and throws if timers are set without end", async () => {
    const clock = createManualClock();
    let last = 0;
    clock.after(60_000, () =>
      clock.after(5, () => {
        last = clock.monotonicMs();
      }),
    );
    await clock.runUntilIdle();
    expect(last).toBe(60_005);
    expect(clock.armedTimers).toBe(0);
    expect(clock.nextDueMs).toBeNull();

    const again = () => void clock.after(100, again);
    again();
    await expect(clock.runUntilIdle(1000)).rejects.toThrow("still armed");
  });

  it("steps the wall clock without changing the monotonic one", () => {
    const clock = createManualClock();
    clock.stepWallClock(-3_600_000);
    expect(clock.monotonicMs()).toBe(0);
    expect(clock.now().toISOString()).toBe("2025-12-31T23:00:00.000Z");
  });
});
