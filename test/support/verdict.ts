/**
 * Setup of the test files on real time. If a test fails while its process waited for a processor most of the time, its
 * error says "no verdict": on such a machine every time limit is a matter of luck. It fails all the same.
 */
import { readFileSync } from "node:fs";
import { beforeEach, type RunnerTestCase } from "vitest";
import { systemClock } from "../../src/adapters/system/clock.ts";

/** Largest share of a test's time that its process may wait for a processor: more, and a failure proves nothing. */
const LARGEST_SHARE = 0.5;

/** Times in ms. */
export interface Spent {
  readonly elapsed: number;
  /** How long the process was ready to run, but another one had the processor. */
  readonly waited: number;
}

/** Why a failure proves nothing; null if it does. */
export function noVerdict({ elapsed, waited }: Spent): string | null {
  if (waited <= elapsed * LARGEST_SHARE) return null;
  return `no verdict: this process waited ${seconds(waited)} of ${seconds(elapsed)} s for a processor`;
}

const seconds = (ms: number) => (ms / 1_000).toFixed(1);

/** Time that the main thread has waited for a processor so far: the second number, in ns. Linux only. */
function waitedMs(): number {
  try {
    return Number(readFileSync("/proc/self/schedstat", "utf8").split(" ")[1]) / 1e6;
  } catch {
    return 0;
  }
}

function label(task: Readonly<RunnerTestCase>, reason: string): void {
  for (const error of task.result?.errors ?? []) {
    error.message = `${reason}\n${error.message}`;
    if (error.stack !== undefined) error.stack = `${reason}\n${error.stack}`;
  }
}

beforeEach(({ onTestFailed, task }) => {
  const [startedMs, before] = [systemClock.monotonicMs(), waitedMs()];
  onTestFailed(() => {
    const reason = noVerdict({ elapsed: systemClock.monotonicMs() - startedMs, waited: waitedMs() - before });
    if (reason !== null) label(task, reason);
  });
});
