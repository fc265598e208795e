import { describe, expect, it } from "vitest";
import { confirmRetention } from "../../src/main/confirm-retention.ts";

const now = new Date("2026-06-01T00:00:00.000Z");
const DAY_MS = 86_400_000;
const daysAgo = (days: number) => new Date(now.getTime() - days * DAY_MS);
const retention = { ageMs: 30 * DAY_MS, requestIdAgeMs: null };

async function start(
  oldest: Date | null,
  { typed = null as string | null, kept = retention as typeof retention | null } = {},
) {
  const questions: string[] = [];
  const ask = async (question: string) => {
    questions.push(question);
    return typed ?? "";
  };
  const io = { now: () => now, ask: typed === null ? null : ask };
  const outcome = await confirmRetention({ retention: kept as never }, io, async () => ({
    kind: "open",
    oldestOutcomeAt: oldest,
  })).then(
    () => "started",
    (error: Error) => error.message,
  );
  return { outcome, questions };
}

describe("a start with a retention", () => {
  // protects [The command line] src/main/confirm-retention.ts
  it("asks on a terminal before it deletes rows that were kept so far", async () => {
    const { outcome, questions } = await start(daysAgo(400), { typed: "n" });
    expect(outcome).toBe("nothing was done");
    expect(questions).toEqual([
      expect.stringMatching(/older than 30 days for good; the oldest is of 2025-04-27.*\[y\/N\] $/),
    ]);
    expect((await start(daysAgo(400), { typed: "y" })).outcome).toBe("started");
  });

  it.each([
    ["without a terminal", daysAgo(400), {}],
    ["without old rows", daysAgo(31), { typed: "n" }],
    ["with an empty feed, or a database that cannot be read", null, { typed: "n" }],
    ["without a retention", daysAgo(400), { typed: "n", kept: null }],
  ])("asks nothing %s", async (_, oldest, how) => {
    expect(await start(oldest, how)).toEqual({ outcome: "started", questions: [] });
  });
});
