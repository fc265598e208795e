import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import type { WitnessEntry } from "../../doubles/simulated-chain/core.ts";
import type { World, WorldNode } from "../world.ts";
import { ChainWatch } from "./chain-watch.ts";
import { CountWatch } from "./count-watch.ts";
import { NodeKeyWatch } from "./node-key-watch.ts";
import { OutcomeWatch } from "./outcome-watch.ts";
import { SendWatch } from "./send-watch.ts";

/** What is known of the faults so far. */
interface Sight {
  /** True once a fault has struck this node. */
  readonly isTroubled: (node: WorldNode) => boolean;
  /** True once somebody has set a clock. */
  readonly wasSet: () => boolean;
}

/** The watches of the stages from the allocation of a nonce to the outcome. */
export class StageWatch {
  private readonly sends: SendWatch;
  private readonly nodeKeys: NodeKeyWatch;
  private readonly outcomes: OutcomeWatch;
  private readonly counts: CountWatch;
  private readonly chain: ChainWatch;

  constructor(world: World, { isTroubled, wasSet }: Sight) {
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
  }

  /** Call this when nothing is broken any more. */
  healed(): void {
    this.chain.healed();
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
    const soFar = [this.sends, this.nodeKeys, this.counts].flatMap(({ violations }) => violations);
    return [...soFar, ...this.outcomes.settled(), ...this.chain.settled()];
  }
}
