import { describe, expect, it } from "vitest";
import { ThroughIntake, type ThroughIntakePorts } from "../../../src/application/cluster/through-intake.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Intent } from "../../../src/domain/transaction.ts";
import type { Became, IntakeStore } from "../../../src/ports/intake-store.ts";
import { BatchRefused, OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { aLane, anIntent } from "../../support/lane-samples.ts";

/** A table in which each intent meets the fate that was planned for it. */
class PlannedStore implements IntakeStore {
  readonly left: (readonly string[])[] = [];
  readonly fates = new Map<string, Became>();
  accepting: () => Promise<void> = async () => undefined;
  leaving: (intents: readonly Intent[]) => Promise<void> = async () => undefined;
  looking: () => Promise<void> = async () => undefined;

  async leave(intents: readonly Intent[]): Promise<void> {
    await this.leaving(intents);
    this.left.push(intents.map(({ txId }) => txId));
  }

  async whatBecame(txIds: readonly string[]): Promise<readonly Became[]> {
    await this.looking();
    return txIds.flatMap((txId) => this.fates.get(txId) ?? []);
  }

  async accept(txIds: readonly string[]): Promise<readonly string[]> {
    await this.accepting();
    return txIds.filter((txId) => this.fates.get(txId)?.kind === "waiting");
  }
}

function bench(ports: Partial<ThroughIntakePorts> = {}) {
  const clock = createManualClock();
  const store = new PlannedStore();
  let told = 0;
  const onLeft = () => void told++;
  const road = new ThroughIntake({ store, clock, wakeUps: { hears: true }, perLane: 1_000, onLeft, ...ports });
  const run = async (intents: readonly Intent[], forMs = 6_000) => {
    const fates = road.leave(intents);
    await clock.advance(forMs);
    return fates;
  };
  return { clock, store, road, run, told: () => told };
}

const lane = aLane();
const waits = ({ txId: leftAs }: Intent): Became => ({ leftAs, kind: "waiting" });
const takes = ({ txId }: Intent, nonce: number): Became => {
  return { leftAs: txId, kind: "taken", txId, nonce, state: "ALLOCATED", subState: null, lastError: null };
};

describe("creates through the intake table", () => {
  it("of one moment are written together, those that come meanwhile in the next write, in the order of the calls", async () => {
    const { store, run, told } = bench();
    const intents = Array.from({ length: 250 }, () => anIntent(lane));
    intents.forEach((intent, index) => void store.fates.set(intent.txId, takes(intent, index)));
    const fates = await run(intents);
    expect(fates.map((fate) => (fate as { nonce: number }).nonce)).toEqual(intents.map((_, index) => index));
    expect(store.left.map((each) => each.length)).toEqual([200, 50]);
    expect(store.left.flat()).toEqual(intents.map(({ txId }) => txId));
    expect(told()).toBe(2);
  });

  it("that the database cannot hold fail alone", async () => {
    const { store, run } = bench();
    const [good, bad, fine] = [anIntent(lane), anIntent(lane), anIntent(lane)];
    store.leaving = async (intents) => {
      if (intents.includes(bad)) throw new BatchRefused("NUL");
    };
    for (const intent of [good, fine]) store.fates.set(intent.txId, takes(intent, 1));
    const fates = await run([good, bad, fine]);
    expect(fates).toMatchObject([{ nonce: 1 }, { code: "INVALID_REQUEST" }, { nonce: 1 }]);
  });

  it("are waited for while the database is away, and told as unknown where it stays away", async () => {
    const { clock, store, road } = bench();
    const [soon, never] = [anIntent(lane), anIntent(lane)];
    store.looking = () => Promise.reject(new StoreUnavailable("away"));
    store.accepting = () => Promise.reject(new OutcomeUnknown("away"));
    const first = road.leave([soon]);
    await clock.advance(2_000);
    const second = road.leave([never]);
    await clock.advance(1_000);
    store.looking = async () => undefined;
    store.fates.set(soon.txId, takes(soon, 7)).set(never.txId, waits(never));
    await clock.advance(6_000);
    expect(await first).toMatchObject([{ nonce: 7 }]);
    expect(await second).toMatchObject([{ code: "UNAVAILABLE", extras: { outcome: "unknown", txId: never.txId } }]);
  });

  it("that are nowhere are told as unknown: the database lost them", async () => {
    const { run } = bench();
    const lost = anIntent(lane);
    expect(await run([lost])).toMatchObject([{ extras: { outcome: "unknown", txId: lost.txId } }]);
  });

  it("that an older node failed, which declines nothing, are refused with its words", async () => {
    const { store, run } = bench();
    const [reverts, reused] = [anIntent(lane), anIntent(lane)];
    const failed = { nonce: null, state: "FAILED_FINAL", lastError: "it said no" } as const;
    store.fates.set(reverts.txId, { ...takes(reverts, 0), ...failed, subState: "REJECTED" } as Became);
    store.fates.set(reused.txId, { ...takes(reused, 0), ...failed, subState: "REQUEST_ID_REUSED" } as Became);
    expect(await run([reverts, reused])).toMatchObject([
      { code: "SUBMISSION_REJECTED", message: "it said no" },
      { code: "REQUEST_ID_REUSED", message: "it said no" },
    ]);
  });

  it("that a newer node declined in words of its own are refused all the same", async () => {
    const { store, run } = bench();
    const intent = anIntent(lane);
    store.fates.set(intent.txId, { leftAs: intent.txId, kind: "declined", problem: null });
    const [fate] = await run([intent]);
    expect(fate).toBeInstanceOf(FencepostError);
    expect(fate).toMatchObject({ code: "UNAVAILABLE" });
  });

  it("are looked for at once when an owner says that it took some up", async () => {
    const { clock, store, road } = bench();
    const intent = anIntent(lane);
    store.fates.set(intent.txId, waits(intent));
    let answered = false;
    void road.leave([intent]).then(() => {
      answered = true;
    });
    await clock.advance(10);
    store.fates.set(intent.txId, takes(intent, 3));
    road.look();
    await clock.advance(1);
    expect(answered).toBe(true);
  });
});
