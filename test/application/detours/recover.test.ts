import { describe, expect, it } from "vitest";
import type { ChainContext } from "../../../src/application/chain/chain-context.ts";
import { Counts } from "../../../src/application/chain/counts.ts";
import { recoverLanes } from "../../../src/application/detours/reconcile.ts";
import { OwnedLane } from "../../../src/application/lane/owned-lane.ts";
import { Term } from "../../../src/application/lane/term.ts";
import type { CountAnswer } from "../../../src/domain/chain/counts.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { ChainUnavailable } from "../../../src/ports/chain.ts";
import { type LaneWrite, StoreUnavailable, type WriteOutcome } from "../../../src/ports/lane-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { ENDLESS } from "../../support/chain-bench.ts";
import { changesOf } from "../../support/changes-of.ts";
import { uniqueAddress } from "../../support/lane-samples.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";

type Answer = number | Error;

interface Script {
  readonly latest?: readonly Answer[];
  readonly pending?: readonly Answer[];
  /** The transaction count that the second endpoint reports; if absent, there is no second endpoint. */
  readonly elsewhere?: CountAnswer;
}

/** An endpoint that gives the scripted answers in order and then repeats the last one. */
function bench(script: Script = {}) {
  const clock = createManualClock();
  const telemetry = recordTelemetry();
  const left = { latest: [...(script.latest ?? [0])], pending: [...(script.pending ?? script.latest ?? [0])] };
  const seen = { asking: 0, most: 0, writes: [] as LaneWrite[] };
  const { elsewhere } = script;
  const chain = {
    transactionCount: async (_: Address, tag: "latest" | "pending") => {
      seen.most = Math.max(seen.most, ++seen.asking);
      await Promise.resolve();
      seen.asking--;
      const answers = left[tag];
      const answer = (answers.length > 1 ? answers.shift() : answers[0]) as Answer;
      if (answer instanceof Error) throw answer;
      return { count: answer, endpoint: "here" };
    },
    transactionCountEverywhere: async (signer: Address): Promise<readonly CountAnswer[]> => {
      const own: CountAnswer = { kind: "says", count: (await chain.transactionCount(signer, "latest")).count };
      return elsewhere === undefined ? [own] : [own, elsewhere];
    },
  };
  const known = { follower: { head: null }, settings: { pollIntervalMs: 100 } };
  const counts = new Counts({ chain: { ...chain, transactionCountAt: async () => null }, ...known }, clock);
  const context = { counts, ...known } as unknown as ChainContext;
  const held = new Map<Address, OwnedLane>();
  const write = async (one: LaneWrite): Promise<WriteOutcome> => {
    seen.writes.push(one);
    const cursor = one.kind === "reconcile" ? one.floor : 0;
    const outcome = { status: "reconciled", cursor, suspendedBy: null } as const;
    held.get(one.fence.lane.signer)?.fold(changesOf(one, outcome));
    return outcome;
  };
  const ports = { chains: new Map([[1, context]]), telemetry };
  const termPorts = { ...ENDLESS, telemetry, writer: { write } };
  const aHeldLane = (cursor: number | null = 5, chainId = 1): OwnedLane => {
    const nothing = { tracking: [], allocated: 0, watched: [], holes: [], reservations: [], epochFloor: 0 };
    const snapshot = { cursor, suspendedBy: null, reconciled: false, genesisHash: null, ...nothing };
    const term = new Term({ lane: { chainId, signer: uniqueAddress() }, instanceId: "i", token: 1 }, termPorts);
    const lane = new OwnedLane(term, snapshot, { hashes: new Map(), onChain: new Set() });
    held.set(lane.lane.signer, lane);
    return lane;
  };
  const run = async (lanes: readonly OwnedLane[]) => {
    const running = recoverLanes(ports, lanes);
    for (let i = 0; i < 10; i++) await clock.advance(100);
    await running;
  };
  return { writer: termPorts.writer, aHeldLane, seen, telemetry, run };
}

describe("a lane suspended after the database's history changed", () => {
  it.each<[string, Script, number]>([
    ["the chain has mined no more nonces than were allocated, so nothing must be proved", { latest: [5] }, 5],
    ["fewer were mined than allocated", { latest: [3], pending: [4] }, 5],
    ["more were mined than allocated", { latest: [8] }, 8],
    ["more are pending than allocated", { latest: [5], pending: [9] }, 9],
    ["the pending count falls: the part that both reads show is proved", { latest: [5], pending: [9, 7] }, 7],
    ["the mined count grows meanwhile: the first read is proved", { latest: [6, 7], pending: [6, 7] }, 6],
    ["another endpoint agrees", { latest: [8], elsewhere: { kind: "says", count: 8 } }, 8],
    ["another endpoint lags, but reports the same count", { latest: [8], elsewhere: { kind: "behind", count: 8 } }, 8],
  ])("resumes if %s", async (_, script, cursor) => {
    const { run, aHeldLane, seen, telemetry } = bench(script);
    const lane = aHeldLane();
    expect([lane.heldByHistory, lane.suspended]).toEqual([true, true]);
    await run([lane]);
    expect(seen.writes).toEqual([{ kind: "reconcile", fence: lane.fence, floor: cursor }]);
    expect(lane).toMatchObject({ cursor, heldByHistory: false, suspended: false });
    expect(telemetry.of("lane.recovered")).toMatchObject([{ from: 5, cursor }]);
  });

  it.each<[string, Script]>([
    ["a second read returns a lower count", { latest: [8, 5] }],
    ["another endpoint reports a lower count", { latest: [8], elsewhere: { kind: "says", count: 5 } }],
    // protects [Keys of the node, other chains, comparison] src/application/detours/reconcile.ts
    ["another endpoint lags behind the block", { latest: [8], elsewhere: { kind: "behind", count: 5 } }],
    // protects [Keys of the node, other chains, comparison] src/application/detours/reconcile.ts
    ["another endpoint gives no answer", { latest: [8], elsewhere: { kind: "silent" } }],
    ["the chain does not answer", { latest: [new ChainUnavailable("away")] }],
    ["the chain stops answering between the reads", { latest: [8, new ChainUnavailable("away")] }],
  ])("stays suspended while %s", async (_, script) => {
    const { run, aHeldLane, seen } = bench(script);
    const lane = aHeldLane();
    await run([lane]);
    expect(seen.writes).toEqual([]);
    expect(lane.heldByHistory).toBe(true);
  });

  it("reads its next nonce from the chain if the database has none", async () => {
    const { run, aHeldLane } = bench({ latest: [2], pending: [3] });
    const lane = aHeldLane(null);
    await run([lane]);
    expect(lane.cursor).toBe(3);
  });

  it("delays no other lane if its recovery fails", async () => {
    const { run, aHeldLane, seen, writer } = bench({ latest: [5] });
    const lanes = Array.from({ length: 200 }, () => aHeldLane());
    const [failing, stopped] = lanes as [OwnedLane, OwnedLane];
    stopped.stop();
    const { write } = writer;
    writer.write = async (one) => {
      if (one.fence === failing.fence) throw new StoreUnavailable("away");
      return write(one);
    };
    await run([...lanes, aHeldLane(5, 2)]);
    expect(lanes.filter((lane) => lane.heldByHistory)).toEqual([failing, stopped]);
    expect(seen.most).toBeLessThanOrEqual(64);
  });

  it("stays suspended if the write of its next nonce was fenced", async () => {
    const { run, aHeldLane, seen, writer } = bench({ latest: [8] });
    const lane = aHeldLane();
    writer.write = async () => ({ status: "fenced" });
    await run([lane]);
    expect(lane).toMatchObject({ heldByHistory: true, cursor: 5 });
    lane.fold([{ kind: "reconciliation" }]);
    await run([lane]);
    expect(seen.writes).toEqual([]);
  });
});
