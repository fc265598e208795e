import type { Fence, Lane } from "../../../src/domain/lane.ts";
import type {
  Committed,
  LaneChanges,
  LaneWrite,
  NewTransaction,
  TransitionItem,
  WriteOutcome,
} from "../../../src/ports/lane-store.ts";

/** One call to the store; the test decides its result. */
export interface Call {
  readonly writes: readonly LaneWrite[];
  answer(outcomes?: readonly WriteOutcome[]): void;
  fail(error: unknown): void;
}

/** A store whose commits stay open until the test ends them. */
export class ScriptedStore {
  readonly calls: Call[] = [];
  inFlight = 0;
  mostInFlight = 0;
  /** If set, this function supplies the result of each commit at once; it may throw. */
  reply: ((writes: readonly LaneWrite[]) => readonly WriteOutcome[]) | null = null;
  /** Supplies the changes of lanes that a commit reports. */
  changes: (writes: readonly LaneWrite[]) => readonly LaneChanges[] = () => [];

  async commit(writes: readonly LaneWrite[]): Promise<Committed> {
    this.mostInFlight = Math.max(this.mostInFlight, ++this.inFlight);
    try {
      return { outcomes: await this.outcome(writes), changes: this.changes(writes) };
    } finally {
      this.inFlight--;
    }
  }

  call(index: number): Call {
    const call = this.calls[index];
    if (call === undefined) throw new Error(`there were ${this.calls.length} calls`);
    return call;
  }

  private outcome(writes: readonly LaneWrite[]): Promise<readonly WriteOutcome[]> {
    return new Promise((resolve, reject) => {
      const { reply } = this;
      this.calls.push({ writes, answer: (outcomes = writes.map(outcomeOf)) => resolve(outcomes), fail: reject });
      if (reply !== null)
        Promise.resolve()
          .then(() => reply(writes))
          .then(resolve, reject);
    });
  }
}

export const CHAIN = 7;

export function lane(n: number): Lane {
  return { chainId: CHAIN, signer: `0x${n.toString(16).padStart(40, "0")}` };
}

export function fence(n: number, token = 1): Fence {
  return { lane: lane(n), instanceId: "instance", token };
}

export function item(txId: string): NewTransaction {
  const payload = { to: lane(99).signer, data: "0x" as const, value: 0n };
  const named = { txId, lane: lane(0), requestId: null, owner: null } as const;
  return { intent: { ...named, payload, fingerprint: "0x", metadata: null, gas: 21_000n, gasCost: 0n } };
}

export function allocation(n: number, ...txIds: readonly string[]): LaneWrite {
  return { kind: "allocate", fence: fence(n), floor: null, items: txIds.map(item) };
}

export function move(txId: string, completes = false): TransitionItem {
  const base = { txId, from: "TRACKING", to: completes ? "CONFIRMED" : "TRACKING" } as const;
  const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: null } as const;
  if (!completes) return { ...base, event: "resubmit", subState: "PENDING" };
  return { ...base, event: "confirm", subState: null, completion };
}

export function moves(n: number, ...txIds: readonly string[]): LaneWrite {
  return { kind: "transition", fence: fence(n), items: txIds.map((txId) => move(txId)) };
}

export function completion(n: number, txId: string): LaneWrite {
  return { kind: "transition", fence: fence(n), items: [move(txId, true)] };
}

/** Ids of everything in a write, so that a test can check what was committed together and in which order. */
export function idsOf(write: LaneWrite): readonly string[] {
  if (write.kind === "allocate") return write.items.map(({ intent }) => intent.txId);
  return write.kind === "transition" ? write.items.map(({ txId }) => txId) : [write.kind];
}

/**
 * The outcome of a write in a database that accepts everything. The nonce of an entry is its index in the write, which
 * is enough for these tests.
 */
export function outcomeOf(write: LaneWrite): WriteOutcome {
  if (write.kind === "allocate") {
    const items = write.items.map((_, nonce) => ({ result: "created" as const, nonce, createdAt: new Date(0) }));
    return { status: "allocated", items, cursor: write.items.length };
  }
  if (write.kind === "transition") return { status: "applied", items: write.items.map(() => "applied" as const) };
  return { status: "done" };
}
