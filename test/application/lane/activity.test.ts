import { describe, expect, it } from "vitest";
import { Activity, sideBySide } from "../../../src/application/lane/activity.ts";
import { type Deferred, deferred } from "../../support/deferred.ts";

interface Bench {
  readonly activity: Activity;
  readonly runs: Deferred<void>[];
  readonly errors: unknown[];
}

function bench(fail?: (run: number) => unknown): Bench {
  const runs: Deferred<void>[] = [];
  const errors: unknown[] = [];
  const work = async (): Promise<void> => {
    const run = deferred();
    runs.push(run);
    await run.promise;
    const error = fail?.(runs.length);
    if (error !== undefined) throw error;
  };
  return { activity: new Activity(work, (error) => errors.push(error)), runs, errors };
}

function rest(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

it("an activity (a repeatable background job of a lane) starts synchronously when it is first kicked", () => {
  const { activity, runs } = bench();
  activity.kick();
  expect(runs.length).toBe(1);
});

it("an activity (a lane's background job) never runs twice at once", async () => {
  const { activity, runs } = bench();
  for (let i = 0; i < 10; i++) activity.kick();
  await rest();
  expect(runs.length).toBe(1);
  runs[0]?.resolve();
  await rest();
  expect(runs.length).toBe(2);
  runs[1]?.resolve();
  await rest();
  expect(runs.length).toBe(2);
});

it("an activity (a lane's background job) can be started again after it has ended", async () => {
  const { activity, runs } = bench();
  for (let round = 0; round < 3; round++) {
    activity.kick();
    runs[round]?.resolve();
    await activity.settled();
  }
  expect(runs.length).toBe(3);
});

it("an activity (a lane's background job) counts as settled only when its last run has ended", async () => {
  const { activity, runs } = bench();
  await activity.settled();
  activity.kick();
  activity.kick();
  let settled = false;
  void activity.settled().then(() => {
    settled = true;
  });
  runs[0]?.resolve();
  await rest();
  expect(settled).toBe(false);
  runs[1]?.resolve();
  await rest();
  expect(settled).toBe(true);
});

it("an activity (a lane's background job) reports a failure, and runs again at the next kick", async () => {
  const { activity, runs, errors } = bench((run) => (run === 1 ? new Error("away") : undefined));
  activity.kick();
  runs[0]?.resolve();
  await activity.settled();
  expect(errors).toEqual([new Error("away")]);
  activity.kick();
  runs[1]?.resolve();
  await activity.settled();
  expect(errors.length).toBe(1);
});

describe("running a list of jobs with limited concurrency", () => {
  it("never runs more jobs at once than permitted", async () => {
    const gates = new Map([1, 2, 3, 4].map((item) => [item, deferred()]));
    const begun: number[] = [];
    const all = sideBySide(gates.keys(), 2, (item) => {
      begun.push(item);
      return (gates.get(item) as Deferred<void>).promise;
    });
    expect(begun).toEqual([1, 2]);
    gates.get(2)?.resolve();
    await Promise.resolve();
    await Promise.resolve();
    expect(begun).toEqual([1, 2, 3]);
    for (const gate of gates.values()) gate.resolve();
    await all;
    expect(begun).toEqual([1, 2, 3, 4]);
  });

  it("starts nothing if the limit is not positive", async () => {
    await sideBySide([1], -1, () => Promise.reject(new Error("begun")));
  });
});
