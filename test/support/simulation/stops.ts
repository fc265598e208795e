import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { HistoryRecord } from "../../../src/ports/query-store.ts";
import { historyOf } from "../../doubles/memory-store/queries.ts";
import { hashKey } from "../../doubles/memory-store/state.ts";
import type { WitnessEntry } from "../../doubles/simulated-chain/core.ts";
import type { World, WorldNode } from "../world.ts";
import type { Terms } from "./terms.ts";

/** Time in ms for which a request without a response may still be carried out. */
const LATE_MS = 25_000;

/**
 * Checks that no send starts after a stop was confirmed. A kill must stop the node that confirmed it. If a signer is
 * suspended or a transaction put on hold, every node must stop, because only the lane's owner confirms these.
 */
export class Stops {
  readonly violations: string[] = [];
  /** Number of stops of each kind that came into force. */
  readonly counts = new Map<string, number>();
  /** Active stops: what each one stops, the node it applies to (null: all nodes), and since when. */
  private readonly inForce = new Map<string, { readonly bound: WorldNode | null; readonly since: Date }>();
  /**
   * For each stop, the time of the last request that ended it, or that was allowed to cause a send although the stop
   * was active.
   */
  private readonly lifted = new Map<string, number>();
  private readonly world: World;
  private sender: WorldNode | null = null;

  constructor(world: World, terms: Terms) {
    this.world = world;
    world.chain.subscribe((event) => {
      if (event.type !== "arrival" || this.sender === null) return;
      this.look(event.entry, this.sender);
      terms.look(event.entry, this.sender);
    });
  }

  /**
   * Runs a send of this node and remembers the node meanwhile, so that the check knows the sender when the bytes
   * arrive.
   */
  readonly sending = <T>(node: WorldNode, send: () => T): T => {
    this.sender = node;
    try {
      return send();
    } finally {
      this.sender = null;
    }
  };

  /** Records that a stop was confirmed. Ignored if a recent request to end this stop may still be carried out. */
  answered(subject: string, node: WorldNode | null = null): void {
    const liftedAt = this.lifted.get(subject) ?? Number.NEGATIVE_INFINITY;
    if (this.world.clock.monotonicMs() - liftedAt <= LATE_MS) return;
    this.inForce.set(subject, { bound: node, since: this.world.clock.now() });
    const kind = `stopped: ${subject.split(" ", 1)[0]}`;
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  /** Call this before a request that ends a stop, or that may send although the stop is active. */
  lift(subject: string): void {
    this.inForce.delete(subject);
    this.lifted.set(subject, this.world.clock.monotonicMs());
  }

  /** Ends every stop in this checker, because the simulation resumes everything directly in the database. */
  liftAll(): void {
    for (const subject of this.inForce.keys()) this.lift(subject);
  }

  /** The stop in force that forbids this node to sign for the signer; null if there is none. */
  forbids(signer: string | null, node: WorldNode): string | null {
    return this.bindingOf(["everything", `kill ${signer}`, `signer ${signer}`], node);
  }

  /** Since when a stop forbids this node to sign for the signer; null if there is none. */
  since(signer: string, node: WorldNode): Date | null {
    const subject = this.forbids(signer, node);
    return subject === null ? null : (this.inForce.get(subject)?.since ?? null);
  }

  private bindingOf(subjects: readonly string[], node: WorldNode): string | null {
    const binds = (subject: string) => {
      const stop = this.inForce.get(subject);
      return stop !== undefined && (stop.bound === null || stop.bound === node);
    };
    return subjects.find(binds) ?? null;
  }

  private look({ hash, from }: WitnessEntry, sender: WorldNode): void {
    const { state } = this.world.database;
    const txId = hash === null ? undefined : state.hashes.get(hashKey(this.world.chain.chainId, hash))?.txId;
    // A hold ends with the transaction's outcome. A reorg that withdraws the outcome does not restore the hold.
    if (txId !== undefined && hasEnded(historyOf(state, txId))) this.inForce.delete(`transaction ${txId}`);
    const subject = this.forbids(from, sender) ?? this.bindingOf([`transaction ${txId}`], sender);
    if (subject === null) return;
    this.violations.push(`${hash} of ${from} started on ${sender.url} after the stop of ${subject} was answered`);
  }
}

/** True if the transaction was settled after it was last put on hold. */
function hasEnded(history: readonly HistoryRecord[]): boolean {
  const settled = history.findLastIndex(({ state }) => isSettled(state));
  return settled > history.findLastIndex(({ event }) => event === "hold");
}
