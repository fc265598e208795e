import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { Applied } from "../../doubles/memory-store/commit.ts";
import type { TransactionRow } from "../../doubles/memory-store/state.ts";
import type { World, WorldNode } from "../world.ts";

/** Time that a node without faults takes at most to act on a deadline, in ms. */
const ACTED_MS = 6_000;
const LOOK_MS = 500;
const ACTS: readonly string[] = ["cancel", "expire", "hold", "mine"];

interface Sight {
  /** True once a fault has struck this node. */
  readonly isTroubled: (node: WorldNode) => boolean;
  /** True once somebody has set a clock. */
  readonly wasSet: () => boolean;
  /** True while sends may be stopped, or the chain may be in trouble. */
  readonly mayWait: () => boolean;
}

/** Checks that a node without faults ends in time what its caller gave a deadline, and signs nothing after it. */
export class DeadlineWatch {
  readonly violations: string[] = [];
  private readonly world: World;
  private readonly sight: Sight;
  private lookedAtMs = 0;
  private readonly named = new Set<string>();

  constructor(world: World, sight: Sight) {
    this.world = world;
    this.sight = sight;
    world.database.state.watchers.push((applied) => {
      for (const each of applied) this.committed(each);
    });
  }

  private committed({ write }: Applied): void {
    if (this.sight.wasSet()) return;
    const nowMs = this.world.clock.monotonicMs();
    if (nowMs - this.lookedAtMs > LOOK_MS) {
      this.lookedAtMs = nowMs;
      if (!this.sight.mayWait()) for (const row of this.world.rows()) this.look(row);
    }
    if (write.kind !== "transition") return;
    for (const { txId, event } of write.items) {
      const row = this.world.database.state.transactions.get(txId);
      if (event !== "sign" || row === undefined || this.lateMs(row) < ACTED_MS) continue;
      this.violations.push(`${txId} was signed ${this.lateMs(row)} ms after its deadline`);
    }
  }

  private look(row: TransactionRow): void {
    const { txId, lane, state, history, heldSince, receipt, nonce } = row;
    if (isSettled(state) || heldSince !== null || receipt !== null || nonce === null || this.named.has(txId)) return;
    if (this.world.nodeSigners.includes(lane.signer) || this.lateMs(row) < ACTED_MS) return;
    if (history.some(({ event, decision }) => ACTS.includes(event) || decision !== undefined)) return;
    const owned = this.world.database.state.lane(lane);
    const url = this.world.database.state.instances.get(owned?.owner ?? "")?.url;
    const node = this.world.nodes.find((each) => each.url === url);
    if (node === undefined || this.sight.isTroubled(node) || owned?.suspendedBy !== null) return;
    this.named.add(txId);
    this.violations.push(`${txId} still waits ${this.lateMs(row)} ms after its deadline`);
  }

  private lateMs({ validUntil }: TransactionRow): number {
    return validUntil === null ? Number.NEGATIVE_INFINITY : this.world.clock.now().getTime() - validUntil.getTime();
  }
}
