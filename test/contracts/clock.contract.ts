import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/ports/clock.ts";

export interface ClockSubject {
  readonly clock: Clock;
  /** Advances the clock by at least `ms`, if the clock does not run by itself. */
  readonly drive: (ms: number) => Promise<void>;
}

/** The contract of every Clock. No test sleeps: each waits for its callback. */
export function clockContract(name: string, create: () => ClockSubject): void {
  describe(`Clock contract: ${name}`, () => {
    it("never goes back, and counts in milliseconds", async () => {
      const { clock, drive } = create();
      const readings = [clock.monotonicMs(), clock.monotonicMs()];
      await Promise.all([clock.sleep(5), drive(5)]);
      readings.push(clock.monotonicMs());
      expect([...readings].sort((a, b) => a - b)).toEqual(readings);
      expect((readings[2] ?? 0) - (readings[0] ?? 0)).toBeGreaterThanOrEqual(5);
    });

    it("has a wall clock that advances together with the monotonic one", async () => {
      const { clock, drive } = create();
      const before = clock.now();
      expect(before).toBeInstanceOf(Date);
      await Promise.all([clock.sleep(20), drive(20)]);
      expect(clock.now().getTime()).toBeGreaterThan(before.getTime());
    });

    it("never ends a sleep early by its own monotonic time", async () => {
      const { clock, drive } = create();
      const start = clock.monotonicMs();
      const waits = [0.2, 1, 1.5, 3, 7.9].map(async (ms) => {
        await clock.sleep(ms);
        return { ms, elapsed: clock.monotonicMs() - start };
      });
      await drive(10);
      for (const { ms, elapsed } of await Promise.all(waits)) expect(elapsed).toBeGreaterThanOrEqual(ms);
    });

    it("calls each callback once, asynchronously, in order of due time", async () => {
      const { clock, drive } = create();
      const calls: string[] = [];
      const done = new Promise<void>((resolve) => {
        clock.after(60, () => {
          calls.push("60");
          resolve();
        });
        clock.after(30, () => calls.push("30"));
        clock.after(0, () => calls.push("0"));
      });
      expect(calls).toEqual([]);
      await Promise.all([done, drive(60)]);
      // Use delays that are far apart. Each delay counts from its own call, and the process may be paused between two
      // calls.
      expect(calls).toEqual(["0", "30", "60"]);
    });

    it("calls `soon` callbacks asynchronously in the order of the calls", async () => {
      const { clock, drive } = create();
      const calls: number[] = [];
      const done = new Promise<void>((resolve) => {
        clock.soon(() => calls.push(1));
        clock.soon(() => calls.push(2));
        clock.soon(resolve);
      });
      await Promise.resolve();
      expect(calls).toEqual([]);
      await Promise.all([done, drive(0)]);
      expect(calls).toEqual([1, 2]);
    });

    it("treats a negative delay as zero", async () => {
      const { clock, drive } = create();
      const called = new Promise<string>((resolve) => clock.after(-1000, () => resolve("called")));
      await drive(1);
      expect(await called).toBe("called");
    });

    it("does not call a cancelled callback", async () => {
      const { clock, drive } = create();
      const calls: string[] = [];
      const cancel = clock.after(5, () => calls.push("cancelled"));
      cancel();
      cancel();
      let cancelFired: () => void = () => undefined;
      const fired = new Promise<void>((resolve) => {
        cancelFired = clock.after(30, () => {
          calls.push("fired");
          resolve();
        });
      });
      await Promise.all([fired, drive(30)]);
      cancelFired();
      expect(calls).toEqual(["fired"]);
    });

    it("does not fire early for a delay beyond 2^31 ms", async () => {
      const { clock, drive } = create();
      const calls: string[] = [];
      const cancels = [2 ** 31, 2 ** 40].map((ms) => clock.after(ms, () => calls.push("far")));
      await Promise.all([clock.sleep(20), drive(20)]);
      for (const cancel of cancels) cancel();
      expect(calls).toEqual([]);
    });

    it("lets a callback schedule the next one", async () => {
      const { clock, drive } = create();
      const second = new Promise<void>((resolve) => clock.after(2, () => clock.after(2, resolve)));
      await Promise.all([second, drive(4)]);
    });

    it("rejects a sleep at once when its signal aborts, with the signal's reason", async () => {
      const { clock } = create();
      const controller = new AbortController();
      const sleeping = clock.sleep(2 ** 40, controller.signal);
      const reason = new Error("drain");
      controller.abort(reason);
      await expect(sleeping).rejects.toBe(reason);
    });

    it("rejects a sleep whose signal is already aborted", async () => {
      const { clock } = create();
      await expect(clock.sleep(0, AbortSignal.abort("late"))).rejects.toBe("late");
    });

    it("leaves no listener on a signal that outlives the sleep", async () => {
      const { clock, drive } = create();
      const listeners = countListeners();
      await Promise.all([clock.sleep(1, listeners.signal), drive(1)]);
      expect(listeners.added()).toBe(1);
      expect(listeners.removed()).toBe(1);
    });

    it("ignores an abort after the sleep is over", async () => {
      const { clock, drive } = create();
      const controller = new AbortController();
      const sleeping = clock.sleep(1, controller.signal);
      await Promise.all([sleeping, drive(1)]);
      controller.abort(new Error("too late"));
      await expect(sleeping).resolves.toBeUndefined();
    });
  });
}

function countListeners() {
  const { signal } = new AbortController();
  let added = 0;
  let removed = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    added++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    removed++;
    remove(...args);
  };
  return { signal, added: () => added, removed: () => removed };
}
