import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import type { WitnessEntry } from "../../doubles/simulated-chain/core.ts";
import type { World, WorldNode } from "../world.ts";
import { NodeKeyWatch } from "./node-key-watch.ts";
import { OutcomeWatch } from "./outcome-watch.ts";
import { SendWatch } from "./send-watch.ts";

/** The watches of the stages from the allocation of a nonce to the outcome. */
export class StageWatch {
  private readonly sends: SendWatch;
  private readonly nodeKeys: NodeKeyWatch;
  private readonly outcomes: OutcomeWatch;

  constructor(world: World) {
    this.sends = new SendWatch(world);
    this.nodeKeys = new NodeKeyWatch(world);
    this.outcomes = new OutcomeWatch(world);
  }

  follow(node: WorldNode): void {
    this.sends.follow(node);
    this.nodeKeys.follow(node);
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
    return [...this.sends.violations, ...this.nodeKeys.violations, ...this.outcomes.settled()];
  }
}
