import { createCodec } from "../../src/adapters/evm/codec/codec.ts";
import type { OwnedLane, Tracked } from "../../src/application/lane/owned-lane.ts";
import { resumed } from "../../src/application/lane/owned-lane.ts";
import type { Hash, Hex } from "../../src/domain/lane.ts";
import { keptTransaction, type TransactionRow } from "../../src/domain/ledger/index.ts";
import { lookedAt, type TransactionPace } from "../../src/domain/pace/transaction-pace.ts";
import type { Receipt } from "../../src/domain/transaction/transaction.ts";
import type { Failpoint } from "../../src/ports/failpoints.ts";
import type {
  AllocatedRecord,
  ExistingTransaction,
  IntakeRow,
  LaneSnapshot,
  LaneWrite,
  TrackedRecord,
  WriteOutcome,
} from "../../src/ports/lane-store.ts";
import { FakeSigner } from "../doubles/memory-signer.ts";
import { createSeededEntropy } from "../doubles/seeded-entropy.ts";
import { type ChainBench, type ChainBenchOptions, createChainBench, createOwnedLane } from "./chain-bench.ts";
import { changesOf } from "./changes-of.ts";
import { hashNumber } from "./naive-chain.ts";
import { CHAIN_ID, SIGNERS, TO } from "./world.ts";

/** Rows that a stage reads from the database. */
export interface ReadableRows {
  allocated: readonly AllocatedRecord[];
  watched: readonly TrackedRecord[];
  existing: readonly ExistingTransaction[];
  intake: readonly IntakeRow[];
  raw: (key: { readonly txId: string; readonly ordinal: number }) => Hex;
}

/**
 * One lane and everything that a stage needs, with a fake writer that records writes. `answer` determines the result of
 * each write, and the test may stop the lane meanwhile.
 */
export function createStageBench(snapshot: Partial<LaneSnapshot> = {}, options: ChainBenchOptions = {}) {
  const bench: ChainBench = createChainBench(options);
  const writes: LaneWrite[] = [];
  const reloads: string[] = [];
  const passed: Failpoint[] = [];
  const rows: ReadableRows = { allocated: [], watched: [], existing: [], intake: [], raw: () => "0x" };
  const control = {
    mayAct: true,
    maySend: true,
    feedGrew: 0,
    answer: applied as (write: LaneWrite) => WriteOutcome | Error,
    /** Called before a write is answered, to simulate events during the write. */
    meanwhile: (): void => undefined,
    /** Called when a failpoint is passed. */
    at: (_: Failpoint): void => undefined,
  };
  const ports = {
    clock: bench.clock,
    telemetry: bench.telemetry,
    entropy: createSeededEntropy(1),
    nodeId: "node",
    codec: createCodec(),
    signer: new FakeSigner(SIGNERS),
    kills: { holds: () => false },
    lease: { mayAct: () => control.mayAct, maySend: () => control.mayAct && control.maySend },
    reload: (_: unknown, reason: string) => void reloads.push(reason),
    feedGrew: () => void control.feedGrew++,
    intakeDue: () => undefined,
    failpoint: (name: Failpoint) => {
      passed.push(name);
      control.at(name);
    },
    chains: new Map([[CHAIN_ID, bench.context]]),
    lanesOf: (): readonly OwnedLane[] => [lane],
    writer: {
      write: async (write: LaneWrite): Promise<WriteOutcome> => {
        writes.push(write);
        control.meanwhile();
        const outcome = control.answer(write);
        if (outcome instanceof Error) throw outcome;
        lane.fold(changesOf(write, outcome));
        return outcome;
      },
    },
    store: {
      loadAllocated: async (_: unknown, from: number, limit: number) =>
        rows.allocated.filter(({ nonce }) => nonce >= from).slice(0, limit),
      loadRawTransactions: async (keys: readonly { readonly txId: string; readonly ordinal: number }[]) =>
        keys.map((key) => rows.raw(key)),
      loadLane: async () => null,
      loadWatched: async () => rows.watched,
      settledBelow: async () => 0,
      loadPayloads: async () => [],
      loadExpiring: async () => [],
      transaction: async () => null,
      findByRequestIds: async () => rows.existing,
      loadIntake: async () => rows.intake,
    },
  };
  const lane = createOwnedLane(snapshot, bench.context, ports);
  return { ...bench, lane, ports, writes, reloads, passed, rows, control };
}

export type StageBench = ReturnType<typeof createStageBench>;

/** The outcome of a write in a database that accepts everything; nonces start at 100. */
export function applied(write: LaneWrite): WriteOutcome {
  if (write.kind === "allocate") {
    const items = write.items.map((_, n) => ({ result: "created" as const, nonce: 100 + n, createdAt: new Date(0) }));
    return { status: "allocated", items, cursor: 100 + write.items.length };
  }
  if (write.kind === "transition") return { status: "applied", items: write.items.map(() => "applied" as const) };
  return write.kind === "confirmations" ? { status: "confirmations", newFork: false } : { status: "done" };
}

/** The events of the transitions in these writes, in order. */
export function eventsOf(writes: readonly LaneWrite[]): readonly string[] {
  return writes.flatMap((write) =>
    write.kind === "transition" ? write.items.map(({ event, txId }) => `${event} ${txId}`) : [write.kind],
  );
}

export function allocatedRecord(nonce: number, payload: Partial<AllocatedRecord["payload"]> = {}): AllocatedRecord {
  const base = { to: TO, data: "0x", value: 0n } as const;
  const createdAt = new Date(Date.UTC(2026, 0, 1));
  return { txId: `tx ${nonce}`, nonce, requestId: null, payload: { ...base, ...payload }, gas: 21_000n, createdAt };
}

export function trackedRecord(nonce: number, overrides: Partial<TrackedRecord> = {}): TrackedRecord {
  const fees = { type: "legacy", gasPrice: 2_000_000_000n } as const;
  const attempt = { ordinal: 1, kind: "initial", txHash: hashNumber(nonce), gas: 21_000n, fees } as const;
  return {
    txId: `tx ${nonce}`,
    nonce,
    requestId: null,
    state: "TRACKING",
    subState: "PENDING",
    attempts: [attempt],
    receipt: null,
    submitAttempts: 1,
    createdAt: new Date(Date.UTC(2026, 0, 1)),
    firstSentAt: new Date(Date.UTC(2026, 0, 1)),
    lastSubmittedAt: new Date(Date.UTC(2026, 0, 1)),
    acceptedOrdinal: null,
    lastError: null,
    ...overrides,
  };
}

/** A transaction in the owner's memory that is signed, has the stored right to send, and is due to be sent. */
export function due(nonce: number, rawTransaction: Hex = "0x"): Tracked {
  return paced(resumed(trackedRecord(nonce)), { rawTransaction, claimed: true, look: lookedAt(0) });
}

/** Changes the state that times a transaction's sends and checks (its pace). */
export function paced(tx: Tracked, pace: Partial<TransactionPace>): Tracked {
  tx.pace = { ...tx.pace, ...pace };
  return tx;
}

/** Changes the row that the owner remembers for a transaction, as if the database had acknowledged the change. */
export function stored(tx: Tracked, changed: Partial<TransactionRow & TransactionRow["details"]>): Tracked {
  tx.stands(({ expected }) => {
    const { receipt, submitAttempts, lastError } = { ...expected.details, ...changed };
    return keptTransaction({ ...expected, ...changed, details: { receipt, submitAttempts, lastError } });
  }, null);
  return tx;
}

export function mineIn(lane: OwnedLane, tx: Tracked, receipt: Receipt): void {
  lane.mine(stored(tx, { receipt, state: "TRACKING", subState: "MINED" }));
}

export function receiptOf(nonce: number, block: { readonly number: number; readonly hash: Hash }): Receipt {
  const nothing = { gasUsed: 21_000n, effectiveGasPrice: 1n, contractAddress: null, transactionIndex: 0 } as const;
  return { txHash: hashNumber(nonce), blockNumber: block.number, blockHash: block.hash, status: "success", ...nothing };
}
