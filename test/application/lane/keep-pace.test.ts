import { afterEach, describe, expect, it } from "vitest";
import { keepPace, resumed } from "../../../src/application/lane/tracked.ts";
import { AT_ONCE, at, NEVER } from "../../../src/domain/pace/when.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { trackedRecord } from "../../support/stage-bench.ts";
import { transfer, World, type WorldNode } from "../../support/world.ts";

let world: World | null = null;
afterEach(() => world?.close());

const INTERVAL_MS = 60_000;
const RESUBMIT = { resubmitIntervalMs: INTERVAL_MS, repricing: null };

/** Sends a transaction that a node accepts and no block includes. Returns the time when it was sent. */
async function sentOnce(started: World): Promise<{ readonly entry: WorldNode; readonly sentAtMs: number }> {
  const entry = await started.startNode();
  await started.settle(entry.node.api.create(transfer()));
  await started.allSettled(1);
  started.holdBlocks();
  await started.settle(entry.node.api.create(transfer()));
  await started.until(() => started.rows()[1]?.subState === "BROADCAST");
  return { entry, sentAtMs: started.rows()[1]?.lastSubmittedAt?.getTime() as number };
}

async function takenOver(started: World): Promise<WorldNode> {
  const next = await started.startNode();
  await started.until(() => next.events.some(({ type }) => type === "lane.resumed"));
  return next;
}

const sends = (started: World) => started.chain.witness.filter(({ nonce }) => nonce === 1).length;

describe("a lane's new owner", () => {
  it("rebroadcasts an accepted transaction one interval after the last broadcast, not before", async () => {
    world = new World({ settings: RESUBMIT });
    const started = world;
    const { entry, sentAtMs } = await sentOnce(started);
    started.crash(entry);
    await takenOver(started);
    await started.clock.advance(sentAtMs + INTERVAL_MS - 1_000 - started.clock.now().getTime());
    expect(sends(started)).toBe(1);
    await started.until(() => sends(started) === 2, 2_500);
    started.releaseBlocks();
    await started.allSettled(2);
    checkInvariants(started);
  });

  it("rebroadcasts a transaction at once if the resubmit interval has passed", async () => {
    world = new World({ settings: RESUBMIT });
    const started = world;
    const { entry } = await sentOnce(started);
    started.crash(entry);
    await started.clock.advance(2 * INTERVAL_MS);
    await takenOver(started);
    await started.until(() => sends(started) === 2, 5_000);
  });

  it("finds transactions mined in the meantime, and does not rebroadcast them", async () => {
    world = new World({ settings: RESUBMIT });
    const started = world;
    const { entry } = await sentOnce(started);
    started.crash(entry);
    started.releaseBlocks();
    await started.clock.advance(2 * INTERVAL_MS);
    await takenOver(started);
    await started.allSettled(2);
    expect(sends(started)).toBe(1);
  });

  it("broadcasts at once a transaction that no chain node is known to have accepted", async () => {
    world = new World({ settings: RESUBMIT });
    const started = world;
    const entry = await started.startNode();
    await started.settle(entry.node.api.create(transfer()));
    await started.allSettled(1);
    started.holdBlocks();
    entry.faults.inject({ kind: "hang", executed: false }, { method: "eth_sendRawTransaction" });
    await started.settle(entry.node.api.create(transfer()));
    await started.until(() => started.rows()[1]?.subState === "PENDING");
    started.crash(entry);
    await takenOver(started);
    await started.until(() => sends(started) === 1, 5_000);
  });
});

describe("the next broadcast time of a loaded transaction", () => {
  const NOW = new Date(Date.UTC(2026, 0, 1, 0, 1));
  const SENT = new Date(NOW.getTime() - 20_000);
  const taken = { subState: "BROADCAST", acceptedOrdinal: 1, lastError: null, lastSubmittedAt: SENT } as const;
  const due = (overrides: Parameters<typeof trackedRecord>[1], everyMs: number | null = INTERVAL_MS) => {
    const tx = resumed(trackedRecord(1, { ...taken, ...overrides }));
    keepPace(tx, { nowMs: 1_000, now: NOW }, everyMs);
    return [tx.pace.answer, tx.pace.send];
  };

  it.each([
    ["a node accepted it", {}, ["alreadyKnown", at(41_000)]],
    ["a node accepted it, and it was not mined in time", { subState: "STALE" }, ["alreadyKnown", at(41_000)]],
    ["it is stuck", { state: "STUCK", subState: null }, ["alreadyKnown", at(41_000)]],
    [
      "it was sent by a node whose clock is ahead",
      { lastSubmittedAt: new Date(NOW.getTime() + 9_000) },
      ["alreadyKnown", at(61_000)],
    ],
    ["no endpoint has answered", { subState: "PENDING", acceptedOrdinal: null }, [null, AT_ONCE]],
    ["a receipt was withdrawn", { subState: "PENDING" }, [null, AT_ONCE]],
    ["the last answer was a refusal", { lastError: "insufficientFunds: too poor" }, [null, AT_ONCE]],
  ] as const)("follows its stored state: %s", (_, overrides, expected) => {
    expect(due(overrides)).toEqual(expected);
  });

  it("is not set for an accepted transaction if resubmission is disabled", () => {
    expect(due({}, null)).toEqual(["alreadyKnown", NEVER]);
  });

  it("is the present time if no node accepted the newest attempt", () => {
    const record = trackedRecord(1, taken);
    const [first] = record.attempts;
    if (first === undefined) throw new Error("a record without an attempt");
    const attempts = [first, { ...first, ordinal: 2, kind: "reprice" as const }];
    expect(due({ attempts })).toEqual([null, AT_ONCE]);
  });
});
