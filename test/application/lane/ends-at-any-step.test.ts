/**
 * A node may lose a lane (its term ends) at any step. Each scenario is run once for every call to the outside that it
 * makes, with the term ending during that call. Afterwards nothing may be written, signed or sent.
 */
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { quietly } from "../../../src/application/lane/term.ts";
import { resumed, type Tracked } from "../../../src/application/lane/tracked.ts";
import { tendLane } from "../../../src/application/loops/tend.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import { allocate } from "../../../src/application/stages/2-allocate/allocate.ts";
import { sign } from "../../../src/application/stages/3-sign/sign.ts";
import { broadcast } from "../../../src/application/stages/4-broadcast/broadcast.ts";
import { decideFinal, openPass, withdrawOrphaned } from "../../../src/application/stages/6-finality/finality.ts";
import type { Hash, Hex } from "../../../src/domain/lane.ts";
import { lookedAt } from "../../../src/domain/pace/transaction-pace.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { createFakeCodec } from "../../support/fake-codec.ts";
import { hashNumber } from "../../support/naive-chain.ts";
import {
  allocatedRecord,
  createStageBench,
  due,
  mineIn,
  paced,
  receiptOf,
  type StageBench,
  stored,
  trackedRecord,
} from "../../support/stage-bench.ts";
import { CHAIN_ID, SIGNER, TO, transfer } from "../../support/world.ts";

interface Scene {
  readonly bench: StageBench;
  play(): Promise<unknown> | null;
}

const EFFECTS = ["write", "sign", "submit", "sendUnsigned"];

const ENDINGS: readonly [string, (bench: StageBench) => void][] = [
  ["the lane was lost", ({ lane }) => lane.stop("lost")],
  ["the lane is to be reloaded", ({ lane }) => lane.stop("putOff")],
  ["the lease deadline has passed", ({ control }) => void Object.assign(control, { mayAct: false })],
];

/** Counts every call to the outside, and ends the node's ownership of the lane (its term) during call number `step`. */
function watch({ chain, ports }: StageBench, step: number, end: () => void) {
  const seen = { calls: 0, effects: [] as string[], afterwards: [] as string[] };
  const watched = (target: object, name: string, original: (...asked: unknown[]) => unknown) => {
    return (...asked: unknown[]): unknown => {
      seen.calls++;
      if (EFFECTS.includes(name)) (seen.calls > step ? seen.afterwards : seen.effects).push(name);
      if (seen.calls === step) end();
      return original.apply(target, asked);
    };
  };
  for (const target of [chain, ports.store, ports.signer, ports.writer] as object[]) {
    const names = new Set([...Object.keys(target), ...Object.getOwnPropertyNames(Object.getPrototypeOf(target))]);
    for (const name of names) {
      const original = (target as Record<string, unknown>)[name];
      if (typeof original !== "function" || name === "constructor" || name === "custody") continue;
      Object.assign(target, { [name]: watched(target, name, original as () => unknown) });
    }
  }
  return seen;
}

const SCENES: Readonly<Record<string, () => Promise<Scene>>> = {
  async allocate() {
    const bench = createStageBench({ cursor: 5 }, { settings: { nonceStateTimeoutMs: 0 } });
    const entropy = createSeededEntropy(8);
    const intent = {
      ...normalise({ codec: createCodec(), entropy, chainIds: [CHAIN_ID] }, transfer()),
      gas: 21_000n,
      gasCost: 0n,
    };
    return { bench, play: () => allocate(bench.ports, bench.context, bench.lane, [{ intent }]) };
  },
  async sign() {
    const bench = createStageBench({ cursor: 2, allocated: 2 });
    bench.rows.allocated = [allocatedRecord(0), allocatedRecord(1)];
    return { bench, play: () => sign(bench.ports, bench.context, bench.lane) };
  },
  async "claim and send"() {
    const bench = createStageBench();
    for (const nonce of [1, 2]) {
      bench.lane.track(paced(due(nonce), { claimed: false, rawTransaction: null }));
    }
    return { bench, play: () => broadcast(bench.ports, bench.context, bench.lane) };
  },
  async "have the chain node sign and send"() {
    const bench = createStageBench();
    const tx = due(1);
    paced(tx, { rawTransaction: null });
    stored(tx, { attempts: tx.attempts.map((each) => ({ ...each, nodeSigned: true })) });
    bench.lane.track(tx);
    Object.assign(bench.ports.store, { loadPayloads: async () => [{ payload: { to: TO, data: "0x", value: 1n } }] });
    return { bench, play: () => broadcast(bench.ports, bench.context, bench.lane) };
  },
  async "tend, and sign for more"() {
    const bench = createStageBench();
    const tx = await stale(bench);
    bench.lane.track(tx);
    const ports = { ...bench.ports, codec: createFakeCodec() };
    return { bench, play: () => tendLane(ports, bench.context, bench.lane) };
  },
  async "decide what is final"() {
    const bench = await mined();
    const pass = await openPass(bench.context, [bench.lane]);
    return { bench, play: () => decideFinal(bench.ports, pass, bench.lane) };
  },
  async "withdraw what left the chain"() {
    const bench = await mined(hashNumber(99));
    return { bench, play: () => withdrawOrphaned(bench.ports, bench.context, bench.lane) };
  },
};

/**
 * Makes a transaction mined in a block that is older than those in the node's memory, so that the node must request the
 * block's hash. If `hash` is given, the transaction was mined in a block with that hash, which is not canonical.
 */
async function mined(hash?: Hash): Promise<StageBench> {
  const bench = createStageBench({}, { settings: { confirmations: 2 } });
  bench.simulated.mine(200);
  await bench.context.follower.advance();
  const tx = due(1);
  bench.lane.track(tx);
  const blockHash = hash ?? (bench.simulated.blocks.byNumber(10)?.hash as Hash);
  mineIn(bench.lane, tx, receiptOf(1, { number: 10, hash: blockHash }));
  return bench;
}

async function stale(bench: StageBench): Promise<Tracked> {
  bench.simulated.setBaseFee(60_000_000_000n);
  const { attempts } = trackedRecord(0);
  const [{ gas, fees }] = attempts as [(typeof attempts)[number]];
  const unsigned = { chainId: CHAIN_ID, nonce: 0, to: TO, data: "0x", value: 7n, gas, fees, accessList: [] } as const;
  const [signed] = await bench.ports.signer.sign(SIGNER, [unsigned]);
  bench.rows.raw = () => signed?.rawTransaction as Hex;
  const tx = resumed(trackedRecord(0, { acceptedOrdinal: 1, subState: "BROADCAST" }));
  return paced(tx, { answer: "alreadyKnown", look: lookedAt(0) });
}

/** Runs a scenario to its end, including the work that it left running. */
async function play({ bench, play }: Scene): Promise<void> {
  const playing = play();
  const ended = playing === null ? Promise.resolve(true) : quietly(playing);
  await bench.clock.advance(5_000);
  await ended;
  await bench.clock.advance(0);
}

describe.each(Object.entries(SCENES))("a node that was about to %s on a lane", (_, scene) => {
  // protects [The fence] src/application/lane/term.ts
  it.each(ENDINGS)("writes, signs and broadcasts nothing more for the lane once %s", async (_, end) => {
    const whole = await scene();
    const { effects } = watch(whole.bench, Number.POSITIVE_INFINITY, () => undefined);
    await play(whole);
    expect(effects.length, "the scene has something to lose").toBeGreaterThan(0);
    for (let step = 1; ; step++) {
      const made = await scene();
      const seen = watch(made.bench, step, () => end(made.bench));
      await play(made);
      expect(seen.afterwards, `ended at step ${step}`).toEqual([]);
      if (seen.calls < step) break;
    }
  });
});
