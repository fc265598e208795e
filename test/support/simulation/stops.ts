import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { HistoryRecord } from "../../../src/ports/query-store.ts";
import { historyOf } from "../../doubles/memory-store/queries.ts";
import { hashKey } from "../../doubles/memory-store/state.ts";
import type { WitnessEntry } from "../../doubles/simulated-chain/core.ts";
import type { World, WorldNode } from "../world.ts";

/** A request without an answer may still be carried out for this long. */
const LATE_MS = 25_000;

/**
 * Watches the wire for sends that start after a stop was answered. A kill binds the node that answered it; a suspended signer
 * and a held transaction bind every node, because only the lane's owner answers those.
 */
export class Stops {
  readonly violations: string[] = [];
  /** How many stops of each kind came into force. */
  readonly counts = new Map<string, number>();
  /** Answered and not ended: what is stopped, and the one node that it binds; null: every node. */
  private readonly inForce = new Map<string, WorldNode | null>();
  /** When a request that ends a stop, or sends in spite of it, was last made. */
  private readonly lifted = new Map<string, number>();
  private readonly world: World;
  private sender: WorldNode | null = null;

  constructor(world: World) {
    this.world = world;
    world.chain.subscribe((event) => {
      if (event.type === "arrival" && this.sender !== null) this.look(event.entry, this.sender);
    });
  }

  /** The bytes leave here, from this node. */
  readonly sending = <T>(node: WorldNode, send: () => T): T => {
    this.sender = node;
    try {
      return send();
    } finally {
      this.sender = null;
    }
  };

  /** A stop was answered. Ignored while an earlier request that lifts it may still be carried out. */
  answered(subject: string, node: WorldNode | null = null): void {
    const liftedAt = this.lifted.get(subject) ?? Number.NEGATIVE_INFINITY;
    if (this.world.clock.monotonicMs() - liftedAt <= LATE_MS) return;
    this.inForce.set(subject, node);
    const kind = `stopped: ${subject.split(" ", 1)[0]}`;
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  /** A request that ends it, or asks for a send in spite of it, is about to be made. */
  lift(subject: string): void {
    this.inForce.delete(subject);
    this.lifted.set(subject, this.world.clock.monotonicMs());
  }

  /** Resumes everything, directly in the database. */
  liftAll(): void {
    for (const subject of this.inForce.keys()) this.lift(subject);
  }

  private look({ hash, from }: WitnessEntry, sender: WorldNode): void {
    const { state } = this.world.database;
    const txId = hash === null ? undefined : state.hashes.get(hashKey(this.world.chain.chainId, hash))?.txId;
    // With its outcome a hold is over: a reorg that takes the outcome away does not bring the hold back.
    if (txId !== undefined && hasEnded(historyOf(state, txId))) this.inForce.delete(`transaction ${txId}`);
    for (const subject of ["everything", `kill ${from}`, `signer ${from}`, `transaction ${txId}`]) {
      const bound = this.inForce.get(subject);
      if (bound === undefined || (bound !== null && bound !== sender)) continue;
      this.violations.push(`${hash} of ${from} started on ${sender.url} after the stop of ${subject} was answered`);
    }
  }
}

/** It was settled after it was last held back. */
function hasEnded(history: readonly HistoryRecord[]): boolean {
  const settled = history.findLastIndex(({ state }) => isSettled(state));
  return settled > history.findLastIndex(({ event }) => event === "hold");
}
