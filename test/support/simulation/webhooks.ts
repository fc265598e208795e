import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { World, WorldNode } from "../world.ts";
import type { Crew } from "./crew.ts";
import { DeliveryWatch } from "./delivery-watch.ts";
import { Receivers } from "./receivers.ts";
import { Subscribers } from "./subscribers.ts";

/** Webhooks of a simulation: who subscribes, who receives, and the checks of everything that is delivered. */
export class Webhooks {
  readonly watch: DeliveryWatch;
  readonly receivers: Receivers;
  readonly subscribers: Subscribers;
  private readonly dice: Dice;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[]) {
    this.dice = dice;
    this.watch = new DeliveryWatch(world);
    this.receivers = new Receivers(world, dice, this.watch);
    this.subscribers = new Subscribers(world, dice, nodes, this.watch);
  }

  /** What may happen to webhooks in one step of a simulation. */
  step(crew: Crew): void {
    const { dice, subscribers, receivers } = this;
    if (dice.chance(0.3)) subscribers.act();
    if (dice.chance(0.25)) receivers.change();
    if (dice.chance(0.06)) crew.failWebhookCalls(dice);
  }

  heal(): void {
    this.receivers.heal();
    void this.subscribers.restore();
  }

  unrest(): readonly string[] {
    const { waiting } = this.subscribers;
    return [...(waiting === 0 ? [] : [`${waiting} subscribers have no answer`]), ...this.watch.behind()];
  }
}
