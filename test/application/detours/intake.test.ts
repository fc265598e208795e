import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { Intake } from "../../../src/application/detours/intake.ts";
import type { OwnedLane } from "../../../src/application/lane/owned-lane.ts";
import { happened } from "../../../src/application/lane/tracked.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import { NO_DOUBT } from "../../../src/domain/chain/doubt.ts";
import type { Lane } from "../../../src/domain/lane.ts";
import { countCompared } from "../../../src/domain/pace/count-events.ts";
import {
  type ExistingTransaction,
  type IntakeRow,
  type LaneWrite,
  StoreUnavailable,
} from "../../../src/ports/lane-store.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { createStageBench, type StageBench } from "../../support/stage-bench.ts";
import { CHAIN_ID, SIGNER, SIGNERS, TO, transfer } from "../../support/world.ts";

const entropy = createSeededEntropy(21);
const BARE = { to: TO, value: 1 };

function row(intakeId: number, overrides: Parameters<typeof transfer>[0] = {}): IntakeRow {
  const ports = { codec: createCodec(), entropy, chainIds: [CHAIN_ID] };
  return { intakeId, intent: normalise(ports, transfer(overrides)) };
}

async function ready(): Promise<StageBench> {
  const bench = createStageBench({ cursor: 100 }, { settings: { nonceStateTimeoutMs: 1_000_000 } });
  happened(bench.lane, countCompared, { proven: 0, askedAtMs: 0, after: 0 });
  bench.simulated.mine(3);
  await bench.context.follower.advance();
  return bench;
}

async function take(bench: StageBench, ...rows: readonly IntakeRow[]): Promise<boolean> {
  bench.rows.intake = rows;
  return (await look(bench, [bench.lane])).hasMore;
}

/**
 * Processes the rows at two successive blocks. With a single endpoint, an accepted request is refused only if the
 * endpoint rejects it at both blocks.
 */
async function takeAtTwoBlocks(bench: StageBench, ...rows: readonly IntakeRow[]): Promise<boolean> {
  await take(bench, ...rows);
  bench.simulated.mine();
  await bench.context.follower.advance();
  return take(bench, ...rows);
}

/** Performs one poll of the intake, and waits for the work that it started. */
async function look(bench: StageBench, lanes: readonly OwnedLane[]) {
  const asked: (readonly Lane[])[] = [];
  const failures: unknown[] = [];
  let hasMore = false;
  const loadIntake = async (of: readonly Lane[]) => {
    asked.push(of);
    return bench.rows.intake.filter(({ intent }) => of.some(({ signer }) => signer === intent.lane.signer));
  };
  const onMore = () => {
    hasMore = true;
  };
  const ports = { ...bench.ports, store: { ...bench.ports.store, loadIntake } };
  const intake = new Intake(ports, { onMore, onFailed: (error) => failures.push(error), onTaken: () => undefined });
  await intake.look(() => lanes);
  await intake.settled();
  if (failures.length > 0) throw failures[0];
  return { hasMore, asked };
}

function intakeIds(writes: readonly LaneWrite[]): readonly (number | undefined)[] {
  return writes.flatMap((write) => (write.kind === "allocate" ? write.items.map(({ intakeId }) => intakeId) : []));
}

function results(writes: readonly LaneWrite[]): readonly unknown[] {
  return writes.flatMap((write) => (write.kind === "settleIntake" ? write.results : []));
}

function existing({ intent }: IntakeRow, overrides: Partial<ExistingTransaction> = {}): ExistingTransaction {
  const { lane, requestId, fingerprint } = intent;
  return { txId: "the first", lane, requestId, owner: null, nonce: 1, state: "TRACKING", fingerprint, ...overrides };
}

describe("rows of the intake table", () => {
  it("get nonces in call order, in the same database write that consumes the row", async () => {
    const bench = await ready();
    expect(await take(bench, row(4), row(7), row(9))).toBe(false);
    expect(intakeIds(bench.writes)).toEqual([4, 7, 9]);
    expect(results(bench.writes)).toEqual([]);
    expect(bench.lane.toSign(64, 10).length).toBe(3);
  });

  it("cause no write if the table is empty", async () => {
    const bench = await ready();
    await take(bench);
    expect(bench.writes).toEqual([]);
  });

  it("do not block later rows if they are refused", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    const refused = row(1, { payload: BARE });
    await take(bench, refused, row(2, { payload: { ...BARE, to: SIGNER } }));
    expect(intakeIds(bench.writes)).toEqual([2]);
    expect(results(bench.writes)).toEqual([]);
    await takeAtTwoBlocks(bench, refused);
    expect(results(bench.writes)).toMatchObject([
      { intakeId: 1, result: "refused", event: "refuse", reason: "the call would revert" },
    ]);
    expect(bench.control.feedGrew).toBe(1);
  });

  it("are not overtaken by later rows while the chain is unavailable", async () => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" });
    await take(bench, row(1), row(2, { payload: BARE }), row(3));
    expect(intakeIds(bench.writes)).toEqual([1]);
    expect(results(bench.writes)).toEqual([]);
  });

  it("wait for the pending transactions on which they depend", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    bench.lane.count("creating", 1);
    await take(bench, row(1, { payload: BARE }), row(2, { payload: { ...BARE, to: SIGNER } }));
    expect(bench.writes).toEqual([]);
  });

  it("count as pending transactions for later rows of the same page", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    await take(bench, row(1, { payload: { ...BARE, to: SIGNER } }), row(2, { payload: BARE }));
    expect(intakeIds(bench.writes)).toEqual([1]);
    expect(results(bench.writes)).toEqual([]);
  });

  it("cause an unexpected error to be rethrown, not hidden", async () => {
    const bench = await ready();
    Object.assign(bench.context, { marketFor: () => Promise.reject(new TypeError("a mistake of ours")) });
    await expect(take(bench, row(1, { payload: BARE }))).rejects.toThrow(TypeError);
  });
});

describe("an intake row with a request id", () => {
  it("is refused if the id exists with another payload", async () => {
    const bench = await ready();
    const [same, other] = [row(1, { requestId: "r" }), row(2, { requestId: "r" })];
    bench.control.answer = (write) =>
      write.kind === "allocate"
        ? {
            status: "allocated",
            cursor: 100,
            items: [
              { result: "duplicate", existing: existing(same), samePayload: true },
              { result: "duplicate", existing: existing(other), samePayload: false },
            ],
          }
        : { status: "done" };
    await take(bench, same, other);
    expect(results(bench.writes)).toMatchObject([
      { intakeId: 1, result: "alias", of: "the first" },
      { intakeId: 2, result: "refused", event: "refuseReusedRequestId" },
    ]);
  });

  it.each([
    ["with the same payload", {}, { result: "alias", of: "the first" }],
    ["with another payload", { fingerprint: "0x01" } as const, { event: "refuseReusedRequestId" }],
    ["only as an intake row itself", { state: "CREATED" } as const, { event: "refuse" }],
  ])("that exists %s is compared with the existing request first", async (_, overrides, expected) => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    const refused = row(1, { requestId: "r", payload: BARE });
    bench.rows.existing = [existing(refused, overrides)];
    await takeAtTwoBlocks(bench, refused);
    expect(results(bench.writes).at(-1)).toMatchObject(expected);
  });

  it("is refused for the usual reasons if no other request has the id", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    const refused = row(1, { requestId: "r", payload: BARE });
    bench.rows.existing = [existing(refused, { txId: refused.intent.txId })];
    await takeAtTwoBlocks(bench, refused);
    expect(results(bench.writes)).toMatchObject([{ event: "refuse" }]);
    const nameless = row(2, { requestId: null, payload: BARE });
    await takeAtTwoBlocks(bench, nameless);
    expect(results(bench.writes)).toMatchObject([{ event: "refuse" }, { intakeId: 2, event: "refuse" }]);
  });

  it("is refused if the database cannot store it", async () => {
    const bench = await ready();
    bench.control.answer = (write) =>
      write.kind === "allocate"
        ? { status: "allocated", cursor: 100, items: [{ result: "refused", detail: "poison" }] }
        : { status: "done" };
    const poison = row(1);
    await take(bench, poison);
    expect(results(bench.writes)).toMatchObject([
      { intakeId: 1, result: "refused", event: "refuse", reason: `the database cannot store ${poison.intent.txId}` },
    ]);
  });
});

describe("the intake of a lane that this node has lost", () => {
  it("neither ends nor reads any more rows", async () => {
    const bench = await ready();
    bench.simulated.revertCallsTo(TO, "0x");
    await take(bench, row(0, { payload: BARE }));
    bench.simulated.mine();
    await bench.context.follower.advance();
    bench.control.meanwhile = () => bench.lane.stop();
    const rows = Array.from({ length: 200 }, (_, n) => row(n, { payload: { ...BARE, to: n === 0 ? TO : SIGNER } }));
    expect(await take(bench, ...rows)).toBe(false);
    expect(results(bench.writes)).toEqual([]);
    bench.control.answer = () => ({ status: "fenced" });
    expect(await take(bench, ...rows)).toBe(false);
  });
});

describe("a full page of intake rows", () => {
  const full = (overrides: Parameters<typeof transfer>[0] = {}): readonly IntakeRow[] =>
    Array.from({ length: 200 }, (_, n) => row(n, overrides));

  it("is followed by another read if its rows got nonces", async () => {
    expect(await take(await ready(), ...full())).toBe(true);
  });

  it("is not read again while the lane waits for the chain", async () => {
    const bench = await ready();
    bench.faults.inject({ kind: "unavailable" });
    const other = createStageBench({ cursor: 5 }).lane;
    Object.assign(other, { key: "other", lane: { chainId: CHAIN_ID, signer: SIGNERS[1] } });
    bench.rows.intake = full({ payload: BARE });
    expect(await look(bench, [bench.lane, other])).toMatchObject({
      hasMore: false,
      asked: [expect.anything(), [other.lane]],
    });
  });

  it("is not read again after a failed commit", async () => {
    const bench = await ready();
    const other = createStageBench({ cursor: 5 }).lane;
    Object.assign(other, { key: "other", lane: { chainId: CHAIN_ID, signer: SIGNERS[1] } });
    bench.rows.intake = full();
    bench.lane.pace = { ...bench.lane.pace, doubt: { seen: 2, clean: 0, stopped: true } };
    expect(await look(bench, [bench.lane, other])).toMatchObject({
      hasMore: false,
      asked: [expect.anything(), [other.lane]],
    });
    bench.lane.pace = { ...bench.lane.pace, doubt: NO_DOUBT };
    bench.control.answer = () => new StoreUnavailable("away");
    expect(await look(bench, [bench.lane, other])).toMatchObject({
      hasMore: false,
      asked: [expect.anything(), [other.lane]],
    });
  });
});

describe("the intake table's polling", () => {
  // protects [Many lanes] src/application/detours/intake.ts
  it("becomes less frequent ten seconds after the last row", async () => {
    const bench = await ready();
    const intake = new Intake(
      { ...bench.ports, store: { ...bench.ports.store, loadIntake: async () => bench.rows.intake } },
      { onMore: () => undefined, onFailed: () => undefined, onTaken: () => undefined },
    );
    const beats = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    const due = (isNotified: boolean) => beats.filter((beat) => intake.isDue(beat, isNotified));
    expect([due(true), due(false)]).toEqual([[10], [3, 6, 9]]);
    bench.rows.intake = [row(1)];
    await intake.look(() => [bench.lane]);
    await intake.settled();
    expect([due(true), due(false)]).toEqual([beats, beats]);
    await bench.clock.advance(10_001);
    expect([due(true), due(false)]).toEqual([[10], [3, 6, 9]]);
    intake.expectRows();
    expect([due(true), due(false)]).toEqual([beats, beats]);
  });
});
