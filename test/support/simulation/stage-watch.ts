import { BatchRefused } from "../../../src/ports/lane-store.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import type { WitnessEntry } from "../../doubles/simulated-chain/core.ts";
import type { World, WorldNode } from "../world.ts";
import { ChainWatch } from "./chain-watch.ts";
import { CountWatch } from "./count-watch.ts";
import { DeadlineWatch } from "./deadline-watch.ts";
import { NodeKeyWatch } from "./node-key-watch.ts";
import { OutcomeWatch } from "./outcome-watch.ts";
import { SendWatch } from "./send-watch.ts";

/** Refusals that the simulation itself makes, and of an intake row that an unknown commit has settled. */
const EXPECTED = /^(?:refused for once|poison|it would take too long to repair)$|^transaction .* exists already$/;

/** What is known of the faults so far. */
interface Sight {
  /** True once a fault has struck this node. */
  readonly isTroubled: (node: WorldNode) => boolean;
  /** True once somebody has set a clock. */
  readonly wasSet: () => boolean;
  /** True while sends may be stopped, or the chain may be in trouble. */
  readonly mayWait: () => boolean;
}

/** The watches of the stages from the allocation of a nonce to the outcome. */
export class StageWatch {
  private readonly sends: SendWatch;
  private readonly nodeKeys: NodeKeyWatch;
  private readonly outcomes: OutcomeWatch;
  private readonly counts: CountWatch;
  private readonly chain: ChainWatch;
  private readonly deadlines: DeadlineWatch;
  private readonly refused: string[] = [];

  constructor(world: World, sight: Sight) {
    const { isTroubled, wasSet } = sight;
    this.deadlines = new DeadlineWatch(world, sight);
    this.counts = new CountWatch(world, isTroubled);
    this.chain = new ChainWatch(world);
    this.sends = new SendWatch(world);
    this.nodeKeys = new NodeKeyWatch(world, wasSet);
    this.outcomes = new OutcomeWatch(world);
  }

  follow(node: WorldNode): void {
    this.sends.follow(node);
    this.nodeKeys.follow(node);
    this.counts.follow(node);
    this.followRefusals(node);
  }

  /** No node plans a write that the ledger refuses as a mistake. */
  private followRefusals({ store, url }: WorldNode): void {
    const commit = store.commit.bind(store);
    store.commit = async (writes) => {
      try {
        return await commit(writes);
      } catch (error) {
        if (error instanceof BatchRefused && !EXPECTED.test(error.message))
          this.refused.push(`${url} planned ${writes.map(({ kind }) => kind).join()}: ${error.message}`);
        throw error;
      }
    };
  }

  /** Call this when nothing is broken any more. */
  healed(): void {
    this.chain.healed();
  }

  /** Call this if an endpoint names a wrong block in receipts: the block is not read again. */
  receiptsMisplaced(): void {
    this.chain.mayMiss = true;
  }

  happened(node: WorldNode | null, event: TelemetryEvent): void {
    this.outcomes.happened(node, event);
  }

  /** Looks at bytes that arrive at the chain. */
  look(entry: WitnessEntry, sender: WorldNode): void {
    this.sends.look(entry, sender);
  }

  /** Everything that was wrong. Call this at rest. */
  troubles(): readonly string[] {
    const soFar = [this.sends, this.nodeKeys, this.counts, this.deadlines].flatMap(({ violations }) => violations);
    return [...this.refused, ...soFar, ...this.outcomes.settled(), ...this.chain.settled()];
  }
}
