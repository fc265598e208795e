import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { LaneWrite } from "../../../src/ports/lane-store.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import type { World, WorldNode } from "../world.ts";
import { Askers } from "./askers.ts";
import type { Crew } from "./crew.ts";
import { SignatureWatch } from "./signature-watch.ts";
import type { Stops } from "./stops.ts";

interface MessageParts {
  readonly dice: Dice;
  readonly nodes: () => readonly WorldNode[];
  readonly stops: Stops;
}

/** Signatures of messages in a simulation: who asks and decides, and the checks of everything that is signed. */
export class Messages {
  readonly watch: SignatureWatch;
  readonly askers: Askers;
  private readonly world: World;
  private readonly dice: Dice;

  constructor(world: World, { dice, nodes, stops }: MessageParts) {
    this.world = world;
    this.dice = dice;
    this.watch = new SignatureWatch(world, dice, stops);
    this.askers = new Askers(world, dice, nodes, this.watch);
  }

  /** What may happen to messages in one step of a simulation. */
  step(crew: Crew): void {
    const { dice, askers } = this;
    if (dice.chance(0.5)) askers.ask();
    if (dice.chance(0.2)) askers.decide();
    if (dice.chance(0.05)) askers.audit();
    if (dice.chance(0.02)) askers.tighten();
    if (dice.chance(0.06)) crew.crashWhileSigning(dice);
  }

  /** Call this after a commit. */
  committed(writes: readonly LaneWrite[]): void {
    for (const { kind, fence } of writes) {
      const row =
        kind === "signMessage" || kind === "settleMessage" ? this.world.database.state.lane(fence.lane) : null;
      if (row != null) this.watch.committed(row);
    }
  }

  /** Call this at each event of a node. */
  happened(node: WorldNode | null, event: TelemetryEvent): void {
    if (node === null || event.type !== "message.answered") return;
    if (event.result === "signed" || event.result === "repeated") this.watch.answers(node, event.lane.signer);
  }
}
