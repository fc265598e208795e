import { describe, expect, it } from "vitest";
import { quietly } from "../../../src/application/lane/term.ts";
import { sign } from "../../../src/application/stages/3-sign/sign.ts";
import { LOOK_DUE } from "../../../src/domain/pace/transaction-pace.ts";
import { type SignedTransaction, SigningRefused } from "../../../src/ports/signer.ts";
import { allocatedRecord, createStageBench, eventsOf, type StageBench } from "../../support/stage-bench.ts";
import { TO } from "../../support/world.ts";

const PRICED = { maxFeePerGas: 9n, maxPriorityFeePerGas: 2n };

function run(bench: StageBench): Promise<boolean> {
  return quietly(sign(bench.ports, bench.context, bench.lane));
}

function waiting(count: number, payload = PRICED): StageBench {
  const bench = createStageBench({ cursor: count });
  bench.lane.backlog.enqueue(Array.from({ length: count }, (_, nonce) => allocatedRecord(nonce, payload)));
  return bench;
}

describe("the sign stage", () => {
  it("commits a signed attempt together with the right to send", async () => {
    const bench = waiting(2);
    const trackedAtCommit: number[] = [];
    bench.control.meanwhile = () => void trackedAtCommit.push(bench.lane.unmined.size);
    await run(bench);
    expect(trackedAtCommit).toEqual([0]);
    expect(bench.writes).toMatchObject([
      {
        kind: "transition",
        items: [
          { event: "sign", to: "TRACKING", subState: "PENDING", claim: { ordinal: 1 }, attempt: { ordinal: 1 } },
          { event: "sign" },
        ],
      },
    ]);
    expect([...bench.lane.unmined.keys()]).toEqual([0, 1]);
    expect(bench.lane.toSend(bench.clock.monotonicMs(), 10).map(({ pace }) => pace.claimed)).toEqual([true, true]);
    expect(bench.passed).toEqual(["sign.signed", "sign.committed"]);
  });

  it("stops when the in-flight window is full, and continues when it has space", async () => {
    const bench = createStageBench({ cursor: 9 }, { settings: { inFlightWindow: 4 } });
    bench.lane.backlog.enqueue(Array.from({ length: 9 }, (_, nonce) => allocatedRecord(nonce, PRICED)));
    await run(bench);
    expect([...bench.lane.unmined.keys()]).toEqual([0, 1, 2, 3]);
    for (const nonce of [0, 1]) bench.lane.unmined.delete(nonce);
    await run(bench);
    expect([...bench.lane.unmined.keys()]).toEqual([2, 3, 4, 5]);
  });

  it("reads waiting transactions from the database page by page", async () => {
    const bench = createStageBench({ cursor: 700, allocated: 700 }, { settings: { inFlightWindow: 1_000 } });
    bench.rows.allocated = Array.from({ length: 700 }, (_, nonce) => allocatedRecord(nonce, PRICED));
    await run(bench);
    expect([...bench.lane.unmined.keys()]).toEqual(Array.from({ length: 700 }, (_, nonce) => nonce));
    expect(eventsOf(bench.writes).length).toBe(700);
  });

  it("schedules a receipt lookup at once if fetchReceiptUponEntry is set", async () => {
    const bench = createStageBench({ cursor: 1 }, { settings: { fetchReceiptUponEntry: true } });
    bench.lane.backlog.enqueue([allocatedRecord(0, PRICED)]);
    await run(bench);
    expect(bench.lane.unmined.get(0)?.pace.look).toEqual(LOOK_DUE);
  });
});

describe("the sign stage stores and sends no transaction", () => {
  it.each<[string, (bench: StageBench) => void]>([
    ["on a lane that stopped", ({ lane }) => lane.stop()],
    ["on a lane that is suspended", ({ lane }) => lane.fold([{ kind: "suspension", suspendedBy: "OPERATOR" }])],
    [
      "on a lane that is not reconciled",
      ({ lane }) => void Object.assign(lane, { ledger: { ...lane.ledger, reconciled: false } }),
    ],
    ["after the lease deadline", ({ control }) => void Object.assign(control, { mayAct: false })],
    ["if no transaction is queued", ({ lane }) => lane.backlog.signed(lane.backlog.atHand)],
  ])("%s", async (_, prepare) => {
    const bench = waiting(2);
    prepare(bench);
    await run(bench);
    expect(bench.writes).toEqual([]);
    expect(bench.passed).toEqual([]);
  });

  it("without a price while the fee market cannot be read", async () => {
    const bench = createStageBench({ cursor: 2 });
    bench.faults.inject({ kind: "unavailable" });
    bench.lane.backlog.enqueue([allocatedRecord(0), allocatedRecord(1)]);
    await run(bench);
    expect(bench.writes).toEqual([]);
    bench.faults.heal();
    await run(bench);
    expect(eventsOf(bench.writes)).toEqual(["sign tx 0", "sign tx 1"]);
    const priced = waiting(1);
    priced.faults.inject({ kind: "unavailable" });
    await run(priced);
    expect(eventsOf(priced.writes)).toEqual(["sign tx 0"]);
  });

  it("if the lane was lost between signing and writing", async () => {
    for (const [late, lose] of [
      [0, (bench: StageBench) => bench.lane.stop()],
      [1, (bench: StageBench) => void Object.assign(bench.control, { mayAct: false })],
    ] as const) {
      const bench = waiting(2);
      bench.control.at = () => lose(bench);
      await run(bench);
      expect(bench.passed).toEqual(["sign.signed"]);
      expect(bench.writes).toEqual([]);
      expect(bench.telemetry.of("lease.fenced"), "past the deadline it is counted").toHaveLength(late);
    }
  });

  it("if the commit of its signed attempt failed", async () => {
    for (const answer of [() => ({ status: "fenced" }) as const, () => new Error("away")]) {
      const bench = waiting(2);
      bench.control.answer = answer;
      await run(bench);
      expect(bench.lane.unmined.size).toBe(0);
      expect(bench.writes.length).toBe(1);
    }
  });

  it("if pricing throws an internal error", async () => {
    const bench = createStageBench({ cursor: 1 });
    bench.lane.backlog.enqueue([allocatedRecord(0)]);
    Object.assign(bench.context, { marketFor: () => Promise.reject(new TypeError("a mistake of ours")) });
    await expect(run(bench)).rejects.toThrow(TypeError);
  });
});

describe("a transaction to be signed", () => {
  it("has its payload, its nonce and the gas that was prepared", async () => {
    const bench = createStageBench({ cursor: 1 });
    const asked: unknown[] = [];
    Object.assign(bench.ports.signer, {
      sign: async (address: string, all: readonly unknown[]): Promise<readonly SignedTransaction[]> => {
        asked.push(address, ...all);
        return all.map(() => ({ rawTransaction: "0x01", txHash: "0x02" }));
      },
    });
    bench.lane.backlog.enqueue([allocatedRecord(7, { data: "0xab", value: 5n, gasPrice: 3n })]);
    await run(bench);
    expect(asked).toEqual([
      bench.lane.lane.signer,
      {
        chainId: bench.lane.lane.chainId,
        nonce: 7,
        to: TO,
        data: "0xab",
        value: 5n,
        gas: 21_000n,
        fees: { type: "legacy", gasPrice: 3n },
        accessList: [],
      },
    ]);
  });

  it("gets type 2930 if it has an access list and the market's type is legacy", async () => {
    const bench = createStageBench({ cursor: 1 }, { chain: { baseFee: null } });
    bench.simulated.mine();
    const accessList = [{ address: TO, storageKeys: [] }];
    bench.lane.backlog.enqueue([allocatedRecord(0, { accessList }), allocatedRecord(1)]);
    await run(bench);
    const types = [...bench.lane.unmined.values()].map(({ attempts }) => attempts[0]?.fees.type);
    expect(types).toEqual(["eip2930", "legacy"]);
  });
});

describe("a nonce for which the signer has already signed another payload", () => {
  function refusedOnce(): StageBench {
    const bench = waiting(1);
    const { signer } = bench.ports;
    const sign = signer.sign.bind(signer);
    let calls = 0;
    Object.assign(signer, {
      sign: (...asked: Parameters<typeof sign>) =>
        calls++ === 0 ? Promise.reject(new SigningRefused(0, "signed before", true)) : sign(...asked),
    });
    return bench;
  }

  it("is signed again if the database shows that nothing was committed at it", async () => {
    const bench = refusedOnce();
    bench.rows.allocated = [allocatedRecord(0, PRICED)];
    await run(bench);
    expect(eventsOf(bench.writes)).toEqual(["sign tx 0"]);
    expect(bench.reloads).toEqual([]);
  });

  it("has its lane reloaded if the database does not show the transaction as unsigned", async () => {
    const bench = refusedOnce();
    const readAgain = (reason: string) => {
      bench.reloads.push(reason);
      bench.lane.stop();
    };
    Object.assign(bench.lane.term, { readAgain });
    await run(bench);
    expect(bench.writes).toEqual([]);
    expect(bench.reloads).toEqual(["nonce 0 was signed for with another payload"]);
  });
});
