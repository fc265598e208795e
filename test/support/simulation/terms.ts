import { type LaneKey, laneKey } from "../../../src/domain/lane.ts";
import type { WitnessEntry } from "../../doubles/simulated-chain/core.ts";
import type { World, WorldNode } from "../world.ts";

/**
 * Checks, whenever bytes arrive at the chain, that their sender still owns the lane, or may not know better yet: a node
 * whose lane another one has taken stops at the latest when its own lease is over. Before that, another node can have the
 * lane only if the database concluded that the sender was dead while it lived.
 */
export class Terms {
  readonly violations: string[] = [];
  private readonly world: World;
  private readonly leaseMs: number;
  /** When each lane was last taken. */
  private readonly takenAtMs = new Map<LaneKey, number>();
  /** Nodes that the database may call dead while they live. */
  private readonly doubted = new Set<WorldNode>();
  private isEveryoneDoubted = false;

  constructor(world: World, leaseMs: number) {
    this.world = world;
    this.leaseMs = leaseMs;
  }

  /** From now on the database may call this node dead while it lives; null: every node. */
  doubt(node: WorldNode | null): void {
    if (node === null) this.isEveryoneDoubted = true;
    else this.doubted.add(node);
  }

  /** Follows the lanes that this node takes. */
  follow({ store }: WorldNode): void {
    const [acquireLane, claimLanes] = [store.acquireLane.bind(store), store.claimLanes.bind(store)];
    const taken = (lane: Parameters<typeof laneKey>[0]) =>
      this.takenAtMs.set(laneKey(lane), this.world.clock.monotonicMs());
    store.acquireLane = async (...asked) => {
      const answer = await acquireLane(...asked);
      if (answer.result === "takenOver") taken(asked[0]);
      return answer;
    };
    store.claimLanes = async (...asked) => {
      const before = new Map([...this.world.database.state.lanes].map(([key, { token }]) => [key, token]));
      const answer = await claimLanes(...asked);
      for (const [key, { lane, token }] of this.world.database.state.lanes) if (token !== before.get(key)) taken(lane);
      return answer;
    };
  }

  /** Looks at bytes that arrive at the chain. */
  look({ hash, from }: WitnessEntry, sender: WorldNode): void {
    const { lanes, instances } = this.world.database.state;
    const row = [...lanes.values()].find(({ lane }) => lane.signer === from);
    const owner = row?.owner == null ? null : instances.get(row.owner);
    if (row === undefined || owner == null || owner.url === sender.url) return;
    const sinceMs = this.world.clock.monotonicMs() - (this.takenAtMs.get(laneKey(row.lane)) ?? 0);
    const mayNotKnow = this.isEveryoneDoubted || this.doubted.has(sender);
    if (mayNotKnow && sinceMs < this.leaseMs) return;
    this.violations.push(
      `${hash} of ${from} was sent by ${sender.url}, ${sinceMs} ms after ${owner.url} took the lane`,
    );
  }
}
