import { describe, expect, it } from "vitest";
import { ThroughDatabase } from "../../../src/application/cluster/through-database.ts";
import type { LeftRequest, LeftStanding } from "../../../src/ports/left-request-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { aLane } from "../../support/lane-samples.ts";

const MIB = 1024 * 1024;

/** A table in which each request gets the answer that was planned for it. */
function bench(answerOf: (request: LeftRequest) => string | null) {
  const clock = createManualClock();
  const left = new Map<string, LeftRequest>();
  const store = {
    leaveRequest: async (request: LeftRequest) => void left.set(request.leftId, request),
    leftStanding: async (leftIds: readonly string[]): Promise<readonly LeftStanding[]> =>
      leftIds.map((leftId) => ({ leftId, begun: true, answer: answerOf(left.get(leftId) as LeftRequest) })),
    withdrawRequest: async () => false,
  };
  const entropy = createSeededEntropy(1, clock);
  const road = new ThroughDatabase({
    ...{ store, clock, entropy, wakeUps: { hears: true }, perLane: 100, onLeft: () => undefined },
  });
  const ask = (action: string, text = "", lane = aLane()) => road.ask(lane, { action, body: { text }, owner: null });
  return { clock, left, ask };
}

describe("a request that was left in the database", () => {
  it.each(["", "not JSON", "null", "7"])(
    "and was answered with '%s' is unknown, and keeps no other waiting",
    async (said) => {
      const { clock, ask } = bench(({ action }) => (action === "odd" ? said : JSON.stringify({ answer: action })));
      const both = Promise.all([ask("odd"), ask("usual")]);
      await clock.advance(1_000);
      expect(await both).toMatchObject([{ extras: { outcome: "unknown" } }, { answer: "usual" }]);
    },
  );

  it("and was refused with a code of a newer version is a refusal", async () => {
    const { clock, ask } = bench(() => JSON.stringify({ problem: { code: "TOO_NEW", detail: "no" } }));
    const asked = ask("order");
    await clock.advance(1_000);
    expect(await asked).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 } });
  });

  it("finds a process full that has 64 MiB of them waiting, whatever their lanes, and has room again afterwards", async () => {
    const { clock, left, ask } = bench(() => null);
    const waiting = Array.from({ length: 63 }, () => ask("large", "x".repeat(MIB)));
    expect(await ask("too much", "x".repeat(MIB))).toMatchObject({ code: "QUEUE_FULL" });
    const small = ask("small");
    await clock.advance(9_000);
    for (const each of await Promise.all([...waiting, small])) expect(each).toMatchObject({ code: "UNAVAILABLE" });
    void ask("again", "x".repeat(MIB));
    await clock.advance(1);
    expect([...left.values()].map(({ action }) => action).slice(-2)).toEqual(["small", "again"]);
  });
});
