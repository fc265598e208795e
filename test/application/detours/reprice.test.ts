import { describe, expect, it } from "vitest";
import { repriceIfBelow } from "../../../src/application/detours/reprice.ts";
import type { Tracked } from "../../../src/application/lane/tracked.ts";
import { happened, resumed } from "../../../src/application/lane/tracked.ts";
import type { ChainSettings } from "../../../src/application/settings.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import { chainJudged } from "../../../src/domain/pace/lane-pace.ts";
import type { Fees } from "../../../src/domain/transaction/fees.ts";
import type { Attempt } from "../../../src/domain/transaction/transaction.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { createFakeCodec } from "../../support/fake-codec.ts";
import { hashNumber } from "../../support/naive-chain.ts";
import {
  createStageBench,
  eventsOf,
  mineIn,
  paced,
  receiptOf,
  type StageBench,
  stored,
  trackedRecord,
} from "../../support/stage-bench.ts";
import { CHAIN_ID, SIGNER, SIGNERS, TO } from "../../support/world.ts";

const GWEI = 1_000_000_000n;

function offer(cap: bigint): Fees {
  return { type: "eip1559", maxFeePerGas: cap * GWEI, maxPriorityFeePerGas: GWEI };
}

function attempt(ordinal: number, overrides: Partial<Attempt> = {}): Attempt {
  return {
    ordinal,
    kind: ordinal === 1 ? "initial" : "reprice",
    txHash: hashNumber(ordinal),
    gas: 21_000n,
    fees: offer(20n),
    ...overrides,
  };
}

interface Scene {
  readonly bench: StageBench;
  readonly tx: Tracked;
  run(): ReturnType<typeof repriceIfBelow>;
}

/** A transaction whose first attempt a node accepted, on a chain whose base fee is far above the attempt's price. */
async function scene(
  attempts: readonly Attempt[] = [attempt(1)],
  settings: Partial<ChainSettings> = {},
): Promise<Scene> {
  const bench = createStageBench({}, { settings });
  bench.simulated.setBaseFee(60n * GWEI);
  const unsigned = {
    chainId: CHAIN_ID,
    nonce: 1,
    to: TO,
    data: "0x",
    value: 7n,
    gas: 21_000n,
    fees: offer(20n),
    accessList: [],
  } as const;
  const [signed] = await new FakeSigner(SIGNERS).sign(SIGNER, [unsigned]);
  bench.rows.raw = () => signed?.rawTransaction as Hex;
  const record = trackedRecord(1, { attempts, acceptedOrdinal: 1, subState: "BROADCAST" });
  const tx = paced(resumed(record), { answer: "alreadyKnown" });
  bench.lane.track(tx);
  const ports = { ...bench.ports, codec: createFakeCodec() };
  const { context, lane } = bench;
  return { bench, tx, run: () => repriceIfBelow({ ports, context, lane, tx }) };
}

const alerts = ({ bench }: Scene) => bench.telemetry.of("alert").map(({ code }) => code);

describe("a transaction whose fee is below the market", () => {
  it("is signed again with a higher fee", async () => {
    const { bench, tx, run } = await scene();
    expect(await run()).toBe("signed");
    expect(eventsOf(bench.writes)).toEqual(["reprice tx 1"]);
    expect(bench.writes).toMatchObject([
      { items: [{ claim: { ordinal: 2 }, attempt: { ordinal: 2, kind: "reprice" } }] },
    ]);
    expect(tx.pace).toMatchObject({ sendOrdinal: 2, claimed: true, answer: null });
    expect(tx.status.subState).toBe("PENDING");
    expect(bench.context.hashes.get(tx.attempts[1]?.txHash as Hex)?.tx).toBe(tx);
    expect(bench.context.hashes.get(tx.attempts[0]?.txHash as Hex)?.tx).toBe(tx);
    expect(bench.passed).toEqual(["another.signed", "another.committed"]);
  });

  it("is not sent while it is signed again", async () => {
    const { bench, tx, run } = await scene();
    const inHand: boolean[] = [];
    bench.control.at = (name) => name === "another.signed" && inHand.push(tx.pace.inHand);
    await run();
    expect([...inHand, tx.pace.inHand]).toEqual([true, false]);
  });

  it.each(["cancel", "replace", "placeholder"] as const)(
    "keeps the attempt kind %s when it is signed again",
    async (kind) => {
      const { bench, run } = await scene([attempt(1), attempt(2, { kind, fees: offer(25n) })]);
      expect(await run()).toBe("signed");
      expect(bench.writes).toMatchObject([{ items: [{ event: kind, attempt: { ordinal: 3, kind } }] }]);
    },
  );

  it("outbids even a superseded attempt when it is signed again", async () => {
    const { bench, tx, run } = await scene([
      attempt(1, { fees: offer(90n) }),
      attempt(2, { kind: "cancel", fees: offer(99n) }),
    ]);
    bench.simulated.setBaseFee(200n * GWEI);
    stored(tx, { acceptedOrdinal: 1 });
    expect(await run()).toBe("signed");
    const [fees] = [tx.attempts.at(-1)?.fees];
    expect(fees).toMatchObject({ type: "eip1559" });
    expect((fees as Extract<Fees, { type: "eip1559" }>).maxFeePerGas).toBeGreaterThanOrEqual(99n * GWEI);
  });
});

describe("a transaction is not signed again with higher fees", () => {
  it.each<[string, (scene: Scene) => void]>([
    ["if its offer is not below the market", ({ bench }) => bench.simulated.setBaseFee(GWEI)],
    ["if no endpoint reports the market", ({ bench }) => void bench.faults.inject({ kind: "unavailable" })],
    [
      "if no node accepted it or called it underpriced",
      ({ tx }) => void stored(paced(tx, { answer: "unknown" }), { acceptedOrdinal: null }),
    ],
    ["while it is being sent", ({ tx }) => void paced(tx, { inHand: true })],
    ["while the chain is in doubt", ({ bench }) => happened(bench.lane, chainJudged, "another first block", 0)],
  ])("%s", async (_, prepare) => {
    const made = await scene();
    prepare(made);
    expect(await made.run()).toBe("kept");
    expect(made.bench.writes).toEqual([]);
    expect(made.tx.attempts.length).toBe(1);
  });

  it("if it has reached the maximum number of attempts", async () => {
    const made = await scene([attempt(1)], { maxAttempts: 1 });
    expect([await made.run(), await made.run()]).toEqual(["kept", "kept"]);
    expect(made.bench.writes).toEqual([]);
    expect(alerts(made)).toEqual(["MAX_ATTEMPTS_REACHED"]);
    expect([...made.tx.facts.keys()]).toEqual(["MAX_ATTEMPTS_REACHED"]);
  });

  it("if those fees would exceed the fee ceiling", async () => {
    const made = await scene([attempt(1)], { maxFeeWei: 21n * GWEI });
    expect([await made.run(), await made.run()]).toEqual(["kept", "kept"]);
    expect(made.bench.writes).toEqual([]);
    expect(alerts(made)).toEqual(["FEE_CEILING_REACHED"]);
    made.bench.simulated.setBaseFee(GWEI);
    made.bench.context.forget();
    await made.run();
    expect(made.tx.facts.size).toBe(0);
  });

  // protects [Sent again, priced again, stuck] src/application/detours/reprice.ts
  it("if an attempt with those fees already exists", async () => {
    const dear = attempt(2, { fees: { type: "eip1559", maxFeePerGas: 500n * GWEI, maxPriorityFeePerGas: 50n * GWEI } });
    const { bench, tx, run } = await scene([attempt(1), dear]);
    paced(tx, { sendOrdinal: 1 });
    expect(await run()).toBe("kept");
    expect(bench.writes).toEqual([]);
    expect(tx.pace).toMatchObject({ sendOrdinal: 2, rawTransaction: null });
  });

  // protects [Sent again, priced again, stuck] src/application/detours/reprice.ts, src/application/detours/change-payload.ts
  it("if it is a blob transaction (eip4844)", async () => {
    const made = await scene();
    const decoded = await createFakeCodec().decodeTransaction(made.bench.rows.raw({ txId: "", ordinal: 1 }));
    const codec = {
      ...createFakeCodec(),
      decodeTransaction: async () => ({ ...decoded, envelope: "eip4844" as const }),
    };
    const { bench, tx } = made;
    const result = await repriceIfBelow({ ...bench, ports: { ...bench.ports, codec }, tx });
    expect(result).toBe("kept");
    expect(bench.writes).toEqual([]);
    expect(alerts(made)).toEqual(["CANNOT_RESIGN"]);
  });

  it.each<[string, (scene: Scene) => void, string]>([
    [
      "if it was mined meanwhile",
      ({ bench, tx }) => mineIn(bench.lane, tx, receiptOf(1, { number: 9, hash: "0x09" })),
      "kept",
    ],
    ["if it was put on hold meanwhile", ({ tx }) => void stored(tx, { heldSince: true }), "kept"],
    ["if the lane was lost meanwhile", ({ bench }) => bench.lane.stop(), "TermOver"],
    ["after the lease deadline", ({ bench }) => void Object.assign(bench.control, { mayAct: false }), "TermOver"],
  ])("%s", async (_, happen, result) => {
    const made = await scene();
    made.bench.control.at = (name) => name === "another.signed" && happen(made);
    expect(await made.run().catch(({ name }: Error) => name)).toBe(result);
    expect(made.bench.writes).toEqual([]);
  });
});
