import { describe, expect, it } from "vitest";
import { createCodec } from "../../../../src/adapters/evm/codec/codec.ts";
import { TermOver } from "../../../../src/application/lane/term.ts";
import { happened } from "../../../../src/application/lane/tracked.ts";
import { normalise } from "../../../../src/application/requests/normalise.ts";
import { allocate } from "../../../../src/application/stages/2-allocate/allocate.ts";
import { countCompared } from "../../../../src/domain/pace/count-events.ts";
import { type NewTransaction, OutcomeUnknown, StoreUnavailable } from "../../../../src/ports/lane-store.ts";
import { createSeededEntropy } from "../../../doubles/seeded-entropy.ts";
import { deferred } from "../../../support/deferred.ts";
import { applied, createStageBench, type StageBench } from "../../../support/stage-bench.ts";
import { CHAIN_ID, transfer } from "../../../support/world.ts";

const entropy = createSeededEntropy(8);

function items(count: number): readonly NewTransaction[] {
  const ports = { codec: createCodec(), entropy, chainIds: [CHAIN_ID] };
  return Array.from({ length: count }, () => ({
    intent: { ...normalise(ports, transfer()), gas: 21_000n, gasCost: 0n },
  }));
}

async function run(bench: StageBench, count = 2): Promise<unknown> {
  const asked = allocate(bench.ports, bench.context, bench.lane, items(count)).catch((error) => error);
  await bench.clock.advance(1_000);
  return asked;
}

/** Makes requests for the transaction count hang until they are released; `rpc` counts them. */
function hangCounts({ chain }: StageBench) {
  const count = chain.transactionCount.bind(chain);
  const gate = deferred();
  let asked = 0;
  chain.transactionCount = async (signer, tag) => {
    asked++;
    await gate.promise;
    return count(signer, tag);
  };
  return { rpc: () => asked, release: () => gate.resolve() };
}

describe("nonce allocation", () => {
  it("writes under the lane's fencing token, then queues the transactions for signing in order", async () => {
    const bench = createStageBench({ cursor: 100 });
    const results = await run(bench);
    expect(results).toMatchObject([{ nonce: 100 }, { nonce: 101 }]);
    expect(bench.writes).toMatchObject([{ kind: "allocate", fence: bench.lane.fence, floor: null }]);
    expect(bench.lane.cursor).toBe(102);
    expect(bench.lane.toSign(64, 10).map(({ nonce }) => nonce)).toEqual([100, 101]);
    expect(bench.telemetry.of("nonce.allocated")).toMatchObject([{ first: 100, count: 2 }]);
    expect(bench.telemetry.of("tx.transition").map(({ event, nonce }) => [event, nonce])).toEqual([
      ["allocate", 100],
      ["allocate", 101],
    ]);
    expect(bench.passed).toEqual(["allocate.committed"]);
  });

  it("lets no transaction move down whose caller named its nonce", async () => {
    const bench = createStageBench({ cursor: 100 });
    const named = items(2).map(({ intent }, at) => ({ intent: at === 0 ? intent : { ...intent, exactNonce: 101 } }));
    const allocated = allocate(bench.ports, bench.context, bench.lane, named);
    await bench.clock.advance(1_000);
    await allocated;
    expect(bench.lane.holders().map(({ nonce, movable }) => [nonce, movable])).toEqual([
      [100, true],
      [101, false],
    ]);
  });

  it("starts a new lane at the chain's nonce count", async () => {
    const bench = createStageBench();
    await run(bench);
    expect(bench.writes).toMatchObject([{ floor: 0 }]);
  });

  it("queues only transactions that were created", async () => {
    const bench = createStageBench({ cursor: 5 });
    const existing = {
      txId: "x",
      lane: bench.lane.lane,
      requestId: "r",
      owner: null,
      nonce: 1,
      state: "CONFIRMED",
      fingerprint: "0x",
    } as const;
    const duplicate = { result: "duplicate", existing, samePayload: true } as const;
    bench.control.answer = () => ({ status: "allocated", items: [duplicate, { result: "noCursor" }], cursor: 5 });
    expect(await run(bench)).toEqual([duplicate, { result: "noCursor" }]);
    expect(bench.lane.hasUnmined()).toBe(false);
    expect(bench.telemetry.of("nonce.allocated")).toEqual([]);
  });

  it("makes no RPC request for a lane that is not reconciled", async () => {
    const bench = createStageBench({ cursor: 5, reconciled: false }, { settings: { nonceStateTimeoutMs: 0 } });
    let asked = false;
    bench.faults.lieAboutNonce((honest) => {
      asked = true;
      return honest + 500;
    });
    bench.control.answer = () => ({ status: "allocated", items: [{ result: "held" }, { result: "held" }], cursor: 5 });
    expect(await run(bench)).toEqual([{ result: "held" }, { result: "held" }]);
    expect(bench.writes).toMatchObject([{ floor: null }]);
    expect(asked).toBe(false);
  });

  it("never lowers the lane's next nonce in memory", async () => {
    const bench = createStageBench({ cursor: 500 });
    await run(bench);
    expect(bench.lane.cursor).toBe(500);
  });
});

describe("nonce allocation for a lane that stopped", () => {
  it("fails with TermOver if the lane was lost", async () => {
    const bench = createStageBench({ cursor: 5 }, { settings: { nonceStateTimeoutMs: 0 } });
    bench.faults.lieAboutNonce((honest) => {
      bench.lane.stop("lost");
      return honest;
    });
    expect(await run(bench)).toBeInstanceOf(TermOver);
    expect(bench.telemetry.of("lease.fenced")).toMatchObject([{ write: "allocate", stoppedBy: "deadline" }]);
  });

  it("writes nothing if the lane stopped during the RPC request", async () => {
    const bench = createStageBench({ cursor: 5 }, { settings: { nonceStateTimeoutMs: 0 } });
    bench.faults.lieAboutNonce((honest) => {
      bench.lane.stop();
      return honest;
    });
    expect(await run(bench)).toBeInstanceOf(TermOver);
    expect(bench.writes).toEqual([]);
  });

  it("returns the committed nonces if the lane stopped during the write", async () => {
    const bench = createStageBench({ cursor: 5 });
    bench.control.meanwhile = () => bench.lane.stop();
    expect(await run(bench)).toMatchObject([{ nonce: 100 }, { nonce: 101 }]);
    expect(bench.lane.toSign(64, 10)).toEqual([]);
    expect(bench.telemetry.of("nonce.allocated")).toMatchObject([{ first: 100, count: 2 }]);
  });

  it("consumes no nonce if its write was fenced off", async () => {
    const bench = createStageBench({ cursor: 5 });
    bench.control.answer = () => ({ status: "fenced" });
    expect(await run(bench)).toBeInstanceOf(TermOver);
    expect([bench.lane.cursor, bench.passed]).toEqual([5, []]);
  });
});

describe("an allocation write that fails", () => {
  it("makes the create fail with 503", async () => {
    const bench = createStageBench({ cursor: 5 });
    await run(bench);
    expect(bench.lane.pace.counts.comparedAtMs).not.toBeNull();
    bench.control.answer = () => new StoreUnavailable("away");
    expect(await run(bench)).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 } });
    expect(bench.lane.pace.counts.comparedAtMs).toBeNull();
    expect(bench.reloads).toEqual([]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts, src/application/chain/counts.ts
  it("makes the next create read the nonce count again", async () => {
    const bench = createStageBench({ cursor: 5 }, { settings: { nonceStateTimeoutMs: 1_000 } });
    await run(bench);
    const written = deferred<never>();
    const { write } = bench.ports.writer;
    bench.ports.writer.write = () => written.promise;
    const failing = allocate(bench.ports, bench.context, bench.lane, items(1)).catch((error) => error);
    await bench.clock.advance(1_000);
    // The cached count is stale by now, so the next batch compares with the chain again, and its request hangs.
    const { rpc, release } = hangCounts(bench);
    bench.ports.writer.write = write;
    const comparing = run(bench);
    await bench.clock.advance(0);
    written.resolve(Promise.reject(new StoreUnavailable("away")));
    await failing;
    const asked = rpc();
    const next = run(bench);
    expect(rpc(), "those that come after the failure ask anew").toBe(asked + 1);
    release();
    expect([await comparing, await next]).toMatchObject([
      [{ result: "created" }, {}],
      [{ result: "created" }, {}],
    ]);
    expect(bench.lane.pace.counts.comparedAtMs).not.toBeNull();
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts, src/application/chain/counts.ts
  it("invalidates a read of the nonce count that began before the failure", async () => {
    const bench = createStageBench({ cursor: 5 }, { settings: { nonceStateTimeoutMs: 1_000_000 } });
    const { rpc, release } = hangCounts(bench);
    const comparing = run(bench);
    bench.control.answer = () => new StoreUnavailable("away");
    happened(bench.lane, countCompared, { proven: 0, askedAtMs: bench.clock.monotonicMs(), after: 0 });
    await run(bench);
    bench.control.answer = applied;
    release();
    await comparing;
    expect(bench.lane.pace.counts.comparedAtMs).toBeNull();
    const asked = rpc();
    await run(bench);
    expect(rpc()).toBe(asked + 1);
  });

  it("causes a reload of the lane if the outcome is unknown", async () => {
    const bench = createStageBench({ cursor: 5 });
    bench.control.answer = () => new OutcomeUnknown("the connection died");
    expect(await run(bench)).toBeInstanceOf(OutcomeUnknown);
    expect(bench.reloads.length).toBe(1);
  });
});
