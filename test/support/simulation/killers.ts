import { FencepostError } from "../../../src/domain/errors.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import { SIGNERS, type World, type WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";
import type { Stops } from "./stops.ts";

const CLIENT_TIMEOUT_MS = 3_000;
const LATE_MS = 20_000;
const LATER: readonly string[] = ["NOT_LEADER", "UNAVAILABLE"];

/**
 * Simulated operators who kill everything, or one signer, through any node they reach, and end the kill after a while.
 */
export class Killers extends Actor {
  private readonly stops: Stops;
  private isKilling = false;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[], stops: Stops) {
    super(world, dice, nodes);
    this.stops = stops;
  }

  /** Only one kill at a time: this simulation does not test two kills at once. */
  kill(): void {
    if (this.isKilling) return;
    this.isKilling = true;
    const signer = this.dice.chance(0.5) ? null : this.dice.pick(SIGNERS);
    this.begin(this.stopFor(signer).finally(() => (this.isKilling = false)));
  }

  private async stopFor(signer: string | null): Promise<void> {
    const subject = signer === null ? "everything" : `kill ${signer}`;
    const nodes = this.nodes();
    if (nodes.length === 0) return;
    const asked = this.dice.pick(nodes);
    const answered = this.ask(asked.node.api.kill({ signer, request: { reason: "drill" }, actor: "operator:killer" }));
    void answered.then((isDone) => isDone && this.stops.answered(subject, asked));
    const isDone = await Promise.race([answered, this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => false)]);
    await this.world.clock.sleep(this.dice.int(50, 4_000));
    // A kill request without a response may still be carried out later. Wait, so that this cannot happen after the kill
    // was ended.
    if (!isDone) await this.world.clock.sleep(LATE_MS);
    while (!(await this.end(signer, subject))) await this.world.clock.sleep(200);
    // A node that was cut off from the database may store its kill later; end that kill too.
    while (this.isStanding()) {
      await this.world.clock.sleep(200);
      await this.end(signer, subject);
    }
  }

  private isStanding(): boolean {
    const { kills } = this.world.database.state;
    return [...kills.values()].some(({ ended }) => !ended) || this.nodes().some(({ node }) => node.kills.inForce > 0);
  }

  private async end(signer: string | null, subject: string): Promise<boolean> {
    const nodes = this.nodes();
    if (nodes.length === 0) return false;
    this.stops.lift(subject);
    const { api } = this.dice.pick(nodes).node;
    const ended = api.endKill({ signer, request: undefined, actor: "operator:killer" });
    return Promise.race([this.ask(ended), this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => false)]);
  }

  private async ask(request: Promise<{ readonly durable: boolean }>): Promise<boolean> {
    try {
      await request;
      return true;
    } catch (error) {
      const code = error instanceof FencepostError ? error.code : String(error);
      if (!LATER.includes(code)) this.absurd.push(`who stops everything was answered ${String(error)}`);
      return false;
    }
  }
}
