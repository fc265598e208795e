import { describe, expect, it } from "vitest";
import { commitPlanned, type LaneWriterPorts, type Planned, plan } from "../../../src/application/lane/lane-writer.ts";
import { type OwnedLane, resumed, type Tracked } from "../../../src/application/lane/owned-lane.ts";
import { TermOver } from "../../../src/application/lane/term.ts";
import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import { IllegalTransition } from "../../../src/domain/transaction/transitions.ts";
import { noFailpoints } from "../../../src/ports/failpoints.ts";
import { type LaneWrite, StoreUnavailable, type WriteOutcome } from "../../../src/ports/lane-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { createOwnedLane, ENDLESS } from "../../support/chain-bench.ts";
import { hashNumber } from "../../support/naive-chain.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";
import { stored } from "../../support/stage-bench.ts";

const RECEIPT: Receipt = {
  txHash: hashNumber(1),
  blockNumber: 9,
  blockHash: hashNumber(9),
  transactionIndex: 0,
  status: "success",
  gasUsed: 21_000n,
  effectiveGasPrice: 1n,
  contractAddress: null,
};

function tracked(
  n: number,
  status: Pick<Tracked, "status">["status"] = { state: "TRACKING", subState: "PENDING" },
): Tracked {
  const fees = { type: "legacy", gasPrice: 1n } as const;
  const attempts = [1, 2].map((ordinal) => ({
    ordinal,
    kind: "initial" as const,
    txHash: hashNumber(n * 10 + ordinal),
    gas: 21_000n,
    fees,
  }));
  const past = { submitAttempts: 1, createdAt: new Date(Date.UTC(2026, 0, 1)), requestId: null, receipt: null };
  const sent = { firstSentAt: null, lastSubmittedAt: null, acceptedOrdinal: null, lastError: null };
  return resumed({ txId: `tx ${n}`, nonce: n, attempts, ...status, ...past, ...sent });
}

function bench(answer: (write: LaneWrite, lane: OwnedLane) => WriteOutcome | Error) {
  const clock = createManualClock();
  const telemetry = recordTelemetry();
  const reloads: string[] = [];
  const writes: LaneWrite[] = [];
  const ports: LaneWriterPorts = {
    clock,
    telemetry,
    failpoint: noFailpoints,
    nodeId: "node",
  };
  const write = async (write: LaneWrite): Promise<WriteOutcome> => {
    writes.push(write);
    const outcome = answer(write, lane);
    if (outcome instanceof Error) throw outcome;
    return outcome;
  };
  const lane = createOwnedLane({}, undefined, {
    ...ENDLESS,
    telemetry,
    writer: { write },
    reload: (_, reason) => void reloads.push(reason),
  });
  return { ports, lane, clock, telemetry, reloads, writes };
}

function applied(write: LaneWrite): WriteOutcome {
  return { status: "applied", items: write.kind === "transition" ? write.items.map(() => "applied" as const) : [] };
}

describe("a planned state transition of a transaction", () => {
  it("changes the owner's memory at once", () => {
    const tx = tracked(1);
    const { item } = plan(tx, "mine", { receipt: RECEIPT });
    expect(tx.status).toEqual({ state: "TRACKING", subState: "MINED" });
    expect(item).toEqual({
      txId: "tx 1",
      event: "mine",
      from: "TRACKING",
      to: "TRACKING",
      subState: "MINED",
      receipt: RECEIPT,
    });
  });

  it("includes the completion if the new state is final", () => {
    const tx = tracked(1, { state: "TRACKING", subState: "MINED" });
    stored(tx, { receipt: RECEIPT });
    expect(plan(tx, "confirm").item.completion).toEqual({
      state: "CONFIRMED",
      settled: true,
      subState: null,
      txHash: hashNumber(1),
    });
    const back = plan(tx, "reorg");
    expect(back.item.completion).toMatchObject({ state: "REORGED", settled: false, subState: "PENDING" });
    const other = tracked(2, { state: "CONFIRMED", subState: null });
    expect(plan(other, "reorg").item.completion?.txHash).toBe(hashNumber(22));
  });

  it("leaves memory unchanged if it is illegal", () => {
    const tx = tracked(1);
    expect(() => plan(tx, "confirm")).toThrow(IllegalTransition);
    expect(tx.status).toEqual({ state: "TRACKING", subState: "PENDING" });
  });
});

describe("committing a lane's planned state transitions", () => {
  function moves(count: number): readonly Planned[] {
    return Array.from({ length: count }, (_, n) => plan(tracked(n), "resubmit"));
  }

  it("writes nothing if there are no transitions", async () => {
    const { ports, lane, writes } = bench(applied);
    await commitPlanned(ports, lane, []);
    lane.stop();
    await expect(commitPlanned(ports, lane, [])).rejects.toThrow(TermOver);
    expect(writes).toEqual([]);
  });

  it("reports every applied transition", async () => {
    const { ports, lane, telemetry, clock } = bench(applied);
    await clock.advance(5_000);
    const tx = tracked(1, { state: "TRACKING", subState: "MINED" });
    stored(tx, { receipt: RECEIPT });
    await commitPlanned(ports, lane, [plan(tracked(2), "resubmit"), plan(tx, "confirm")]);
    const [first, second] = telemetry.of("tx.transition");
    expect(first).toMatchObject({ txId: "tx 2", event: "resubmit", txHash: hashNumber(22), nodeId: "node", token: 1 });
    expect(first).not.toHaveProperty("ageMs");
    expect(second).toMatchObject({ state: "CONFIRMED", txHash: hashNumber(1), ageMs: 5_000 });
  });

  it("is split into several writes if there are many transitions", async () => {
    const { ports, lane, writes } = bench(applied);
    await commitPlanned(ports, lane, moves(450));
    expect(writes.map((write) => (write.kind === "transition" ? write.items.length : 0))).toEqual([200, 200, 50]);
    const failing = bench((write) => (failing.writes.length === 2 ? { status: "fenced" } : applied(write)));
    await expect(commitPlanned(failing.ports, failing.lane, moves(450))).rejects.toThrow(TermOver);
  });

  it("reloads the lane after a failure", async () => {
    const { ports, lane, reloads } = bench(() => new StoreUnavailable("away"));
    await expect(commitPlanned(ports, lane, moves(1))).rejects.toThrow(TermOver);
    expect(reloads).toEqual(["a write failed: away"]);
  });

  it("reloads the lane if the database has another state than expected", async () => {
    const { ports, lane, reloads, telemetry } = bench(() => ({ status: "applied", items: ["applied", "conflict"] }));
    await expect(commitPlanned(ports, lane, moves(2))).rejects.toThrow(TermOver);
    expect(reloads).toEqual(["tx 1 was not TRACKING when it was to resubmit"]);
    expect(telemetry.of("tx.transition").map(({ txId }) => txId)).toEqual(["tx 0"]);
  });

  it("ends the node's ownership of the lane if the database fences the commit", async () => {
    const { ports, lane, reloads, telemetry } = bench(() => ({ status: "fenced" }));
    await expect(commitPlanned(ports, lane, moves(1))).rejects.toThrow(TermOver);
    expect([reloads, telemetry.events]).toEqual([[], []]);
  });

  it("fails with TermOver if the node no longer owns the lane", async () => {
    const { ports, lane } = bench((write, lane) => {
      lane.stop();
      return applied(write);
    });
    await expect(commitPlanned(ports, lane, moves(1))).rejects.toThrow(TermOver);
  });
});
