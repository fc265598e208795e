import { type LaneKey, laneKey } from "../../../src/domain/lane.ts";
import type { LaneStore, LaneWrite } from "../../../src/ports/lane-store.ts";
import type { World } from "../world.ts";

type Commit = LaneStore["commit"];

/** A create only inserts, so it counts a third of a change of what exists. */
const CREATES_PER_CHANGE = 3;

/**
 * Checks the database transactions of a node, as the database's operator sees them: none is larger than configured, no
 * two of one node wait for the feed's counter, and a node whose write was fenced reports it.
 */
export class CommitWatch {
  readonly violations: string[] = [];
  private readonly world: World;
  /** Longest request of one caller, in creates: it is never divided. */
  private readonly longest: () => number;

  private readonly eyes: NodeEyes[] = [];

  constructor(world: World, longest: () => number) {
    this.world = world;
    this.longest = longest;
  }

  /** Nodes that lost a lane, and reported nothing of it. */
  silentLosers(): readonly string[] {
    const isReported = (at: number) =>
      this.world.nodes[at]?.events.some(({ type }) => type === "lease.fenced") === true;
    return this.eyes.flatMap(({ lostAtMs }, at) =>
      lostAtMs.size === 0 || isReported(at)
        ? []
        : [`node-${at + 1} did not report the loss of ${[...lostAtMs.keys()].join()}`],
    );
  }

  /** The store as the node is to see it: all its transactions are watched. */
  readonly watched = <S extends Pick<LaneStore, "commit">>(store: S): S => {
    const eyes = new NodeEyes(this.world, this.violations, this.longest);
    this.eyes.push(eyes);
    const commit: Commit = (writes) => eyes.commit(store.commit.bind(store), writes);
    return new Proxy(store, {
      get: (target, name) => (name === "commit" ? commit : Reflect.get(target, name, target)),
    });
  };
}

/** The transactions of one node. */
class NodeEyes {
  private readonly world: World;
  private readonly violations: string[];
  private readonly longest: () => number;
  private completing = 0;
  /** When this node was told that it no longer has a lane, by lane and token. */
  readonly lostAtMs = new Map<string, number>();

  constructor(world: World, violations: string[], longest: () => number) {
    this.world = world;
    this.violations = violations;
    this.longest = longest;
  }

  async commit(commit: Commit, writes: readonly LaneWrite[]) {
    this.checkSize(writes);
    const completes = writes.some(hasCompletion);
    if (completes && ++this.completing > 1)
      this.violations.push("two transactions of one node wait for the feed's counter");
    try {
      const committed = await commit(writes);
      committed.outcomes.forEach(({ status }, at) => {
        const key = termOf(writes[at] as LaneWrite);
        if (status === "fenced" && !this.lostAtMs.has(key)) this.lostAtMs.set(key, this.world.clock.monotonicMs());
      });
      return committed;
    } finally {
      if (completes) this.completing--;
    }
  }

  private checkSize(writes: readonly LaneWrite[]) {
    const sizes = writes.map(sizeOf);
    const size = sizes.reduce((total, each) => total + each, 0);
    const { batchSize } = this.world.writer;
    // One write is never divided. While a busy server is asked again, creates may join those of a full transaction.
    const most = 2 * batchSize + Math.max(...sizes, writes.length === 1 ? this.longest() : 0);
    if (size > most) this.violations.push(`a transaction has ${size} rows in ${writes.length} writes, of ${batchSize}`);
    const lanes = writes.flatMap(({ kind, fence }): readonly LaneKey[] =>
      kind === "allocate" ? [laneKey(fence.lane)] : [],
    );
    if (new Set(lanes).size < lanes.length)
      this.violations.push(`a transaction locks a lane once for each of ${lanes.length} creates`);
  }
}

/** Number of changed rows, of which a create counts a third. */
function sizeOf(write: LaneWrite): number {
  if (write.kind === "allocate") return write.items.length / CREATES_PER_CHANGE;
  return write.kind === "transition" ? write.items.length : 0;
}

const termOf = ({ fence: { lane, token } }: LaneWrite) => `${laneKey(lane)} under ${token}`;

function hasCompletion(write: LaneWrite): boolean {
  return write.kind === "transition" && write.items.some(({ completion }) => completion !== undefined);
}
