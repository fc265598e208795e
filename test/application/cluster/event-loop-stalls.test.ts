import { beforeEach, describe, expect, it } from "vitest";
import { LeaseLapsed } from "../../../src/application/lane/between-owners.ts";
import { reportingPauses, Wakefulness } from "../../../src/application/loops/reception.ts";
import { DatabaseSilent, FencepostError, unavailable } from "../../../src/domain/errors.ts";
import { createManualClock, type ManualClock } from "../../doubles/manual-clock.ts";
import { scriptedApi } from "../../support/scripted-api.ts";

const EVERY_MS = 100;

let clock: ManualClock;
let wakefulness: Wakefulness;
beforeEach(() => {
  clock = createManualClock();
  wakefulness = new Wakefulness(clock, EVERY_MS);
});

async function beatAfter(ms: number): Promise<void> {
  await clock.advance(ms);
  wakefulness.beat();
}

describe("the detector of process pauses", () => {
  it("reports no pause while heartbeats are on time", async () => {
    await clock.advance(10_000);
    expect(wakefulness.pausedMs()).toBe(0);
    wakefulness.beat();
    for (let n = 0; n < 20; n++) await beatAfter(EVERY_MS + 200);
    expect(wakefulness.pausedMs()).toBe(0);
    wakefulness.rest();
    await clock.advance(10_000);
    expect(wakefulness.pausedMs()).toBe(0);
  });

  it("reports a pause as soon as a heartbeat is overdue, even before the next heartbeat", async () => {
    wakefulness.beat();
    await clock.advance(EVERY_MS + 3_500);
    expect(wakefulness.pausedMs()).toBe(3_500);
    wakefulness.beat();
    expect(wakefulness.pausedMs()).toBe(3_500);
  });

  it("reports the longest pause for a few seconds", async () => {
    wakefulness.beat();
    await beatAfter(EVERY_MS + 3_500);
    await beatAfter(EVERY_MS + 300);
    expect(wakefulness.pausedMs()).toBe(3_500);
    for (let n = 0; n < 50; n++) await beatAfter(EVERY_MS);
    expect(wakefulness.pausedMs()).toBe(0);
  });
});

describe("the error for a create without a database response", () => {
  const silent = new DatabaseSilent("nothing was accepted", new Error("timeout"));

  async function answerTo(refusal: FencepostError): Promise<readonly [string, unknown]> {
    const api = reportingPauses(
      scriptedApi({ create: () => Promise.reject(refusal), createBatch: async () => [refusal] }),
      wakefulness,
    );
    const [alone, [inBatch]] = [await api.create({}).catch((error: unknown) => error), await api.createBatch([{}])];
    expect(alone).toBeInstanceOf(FencepostError);
    expect((inBatch as FencepostError).message).toBe((alone as FencepostError).message);
    return [(alone as FencepostError).message, (alone as FencepostError).extras];
  }

  it("names the database as the cause if this process was not paused", async () => {
    wakefulness.beat();
    expect(await answerTo(silent)).toEqual([
      "the database does not answer; nothing was accepted",
      { retryAfterSeconds: 1 },
    ]);
    expect((await answerTo(new LeaseLapsed()))[0]).toBe("this node's lease is not renewed; nothing was accepted");
  });

  // protects [Short of time] src/application/loops/reception.ts
  it("names the duration of the pause if this process was paused", async () => {
    wakefulness.beat();
    await beatAfter(EVERY_MS + 3_480);
    expect(await answerTo(silent)).toEqual([
      "this node was not scheduled for 3480 ms and did not get the answer of the database in time; nothing was accepted",
      { retryAfterSeconds: 1 },
    ]);
    expect((await answerTo(new LeaseLapsed()))[0]).toBe(
      "this node was not scheduled for 3480 ms, and its lease ran out; nothing was accepted",
    );
    expect((await answerTo(unavailable("the chain does not answer")))[0]).toBe("the chain does not answer");
  });
});
