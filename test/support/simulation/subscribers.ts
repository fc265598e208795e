import { FencepostError } from "../../../src/domain/errors.ts";
import { ANYBODY, type Principal } from "../../../src/domain/keys/principal.ts";
import type { OutcomeFilter } from "../../../src/domain/webhooks/subscriber.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { SubscriberEntry } from "../../doubles/memory-store/subscribers.ts";
import { SIGNERS, type World, type WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";
import type { DeliveryWatch } from "./delivery-watch.ts";
import { PAYER } from "./payers.ts";
import { RECEIVERS } from "./receivers.ts";

const CLIENT_TIMEOUT_MS = 3_000;
const MOST = 4;
/** Keys that are limited to one signer, by name. They see and change only webhooks of that signer's outcomes. */
export const CLERKS: ReadonlyMap<string, Principal> = new Map(
  SIGNERS.map((signer, index) => {
    const name = `clerk-${index}`;
    return [name, { ...ANYBODY, name, signers: new Set([signer]) }];
  }),
);
const ACTOR = "operator:subscriber";
/** Error codes that somebody may get although no node is at fault: another one removed or changed the webhook. */
const EXPECTED: readonly string[] = ["UNAVAILABLE", "NOT_FOUND", "CONFLICT"];

type Deed = (entry: SubscriberEntry, node: WorldNode) => Promise<unknown>;

/**
 * Simulated people who subscribe to outcomes: they add, change, pause, resume, replay, rotate, test and remove webhooks
 * at any node that responds. Some of their keys are limited to one signer.
 */
export class Subscribers extends Actor {
  private readonly watch: DeliveryWatch;
  private serial = 0;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[], watch: DeliveryWatch) {
    super(world, dice, nodes);
    this.watch = watch;
  }

  act(): void {
    const nodes = this.nodes();
    const all = [...this.world.database.state.subscribers.values()];
    if (nodes.length === 0) return;
    const node = this.dice.pick(nodes);
    const isNew = all.length === 0 || (all.length < MOST && this.dice.chance(0.3));
    this.begin(isNew ? this.add(node) : this.change(this.dice.pick(all), node));
  }

  private async change(entry: SubscriberEntry, node: WorldNode): Promise<void> {
    const deed = this.dice.weighted<Deed>([
      [2, (each, { node: { api } }) => api.changeWebhook(this.asked(each, this.wishes(each)), keyOf(each))],
      [1, (each, { node: { api } }) => api.changeWebhook(this.asked(each, { url: this.dice.pick(RECEIVERS) }))],
      [1, (each, { node: { api } }) => api.pauseWebhook(this.asked(each, {}), keyOf(each))],
      [2, (each, { node: { api } }) => api.resumeWebhook(this.asked(each, {}), keyOf(each))],
      [3, (each, at) => this.replay(each, at)],
      [1, (each, { node: { api } }) => api.rotateWebhook(this.asked(each, { overlapSeconds: this.dice.pick([0, 2]) }))],
      [0.5, (each, { node: { api } }) => api.removeWebhook(this.asked(each, undefined))],
      [1, (each, { node: { api } }) => api.testWebhook(this.asked(each, {}))],
      [0.5, (each, { node: { api } }) => api.webhook(each.subscriber.subscriberId)],
      [0.5, (_, { node: { api } }) => api.webhooks()],
      [2, (each, at) => this.trespass(each, at)],
    ]);
    await this.ask(deed(entry, node));
  }

  /** From now on, somebody resumes every webhook that is paused or waits for its receiver, until all are at the end. */
  async restore(): Promise<never> {
    for (;;) {
      const nodes = this.nodes();
      for (const entry of this.world.database.state.subscribers.values()) {
        const { paused, nextTryAt } = entry.subscriber;
        if (nodes.length === 0 || (paused === null && nextTryAt === null)) continue;
        this.begin(this.ask(this.dice.pick(nodes).node.api.resumeWebhook(this.asked(entry, {}))));
      }
      await this.world.clock.sleep(1_500);
    }
  }

  private async add({ node }: WorldNode): Promise<void> {
    const key = this.dice.chance(0.5) ? ANYBODY : this.dice.pick([...CLERKS.values()]);
    const after = this.dice.chance(0.5) ? { after: this.dice.int(0, this.world.database.state.feed.lastSeq) } : {};
    const wishes = key === ANYBODY ? { ...this.signers(), ...this.states() } : this.states();
    await this.ask(node.api.addWebhook(this.named({ ...after, ...wishes }), key));
  }

  private async replay({ subscriber }: SubscriberEntry, { node }: WorldNode): Promise<void> {
    const { subscriberId } = subscriber;
    const after = this.dice.int(0, this.world.database.state.feed.lastSeq);
    this.watch.mayReplay(subscriberId, after);
    await node.api.replayWebhook({ subscriberId, request: { after }, actor: ACTOR });
  }

  /** A limited key must not find a webhook of other signers, nor subscribe to them, whatever it asks for. */
  private async trespass(entry: SubscriberEntry, { node: { api } }: WorldNode): Promise<void> {
    const key = this.dice.pick([...CLERKS.values()]);
    const others = { signers: [...SIGNERS] };
    const { subscriberId, filter } = entry.subscriber;
    const isOf = ({ signers }: OutcomeFilter) => signers?.every((each) => key.signers?.has(each)) === true;
    if (isOf(filter)) {
      const ask = () => api.changeWebhook(this.asked(entry, others), key);
      return this.mustFail("FORBIDDEN", this.dice.chance(0.5) ? ask() : api.addWebhook(this.named(others), key));
    }
    const ask = this.dice.pick([
      () => api.pauseWebhook(this.asked(entry, {}), key),
      () => api.removeWebhook(this.asked(entry, undefined), key),
      () => api.changeWebhook(this.asked(entry, { url: RECEIVERS[1] }), key),
      () => api.webhook(subscriberId, key),
    ]);
    const [filters, known] = [this.watch.filtersOf(subscriberId), this.watch.filtersOf(subscriberId).length];
    // Another person may change the webhook before the node judges the key, so that it is within the key's limits.
    await this.mustFail("NOT_FOUND", ask(), () => filters.slice(known).some(isOf));
  }

  private async mustFail(code: string, request: Promise<unknown>, mayBeDone = () => false): Promise<void> {
    const done = await request.then(
      () => "done",
      (error: unknown) => (error instanceof FencepostError ? error.code : String(error)),
    );
    const isRefused = [code, "NOT_FOUND", "UNAVAILABLE"].includes(done);
    const isExpected = isRefused || (["done", "CONFLICT"].includes(done) && mayBeDone());
    if (!isExpected) this.absurd.push(`a key beyond its limits got ${done}, not ${code}`);
  }

  private asked({ subscriber: { subscriberId } }: SubscriberEntry, request: object | undefined) {
    return { subscriberId, request, actor: ACTOR };
  }

  private named(wishes: object) {
    const request = { name: `hook-${++this.serial}`, url: this.dice.pick(RECEIVERS), ...wishes };
    return { subscriberId: "", request, actor: ACTOR };
  }

  private states(): object {
    return this.dice.chance(0.3) ? { states: ["CONFIRMED", "FAILED_FINAL", "REORGED"] } : {};
  }

  private signers(): object {
    if (this.dice.chance(0.15)) return { keys: [PAYER] };
    return this.dice.chance(0.4) ? { signers: [this.dice.pick(SIGNERS), this.dice.pick(SIGNERS)] } : {};
  }

  /** Another filter; that of a limited key's webhook stays within the key's limits. */
  private wishes({ subscriber: { createdBy } }: SubscriberEntry): object {
    return createdBy === null ? { ...this.signers(), ...this.states() } : this.states();
  }

  private async ask(request: Promise<unknown>): Promise<void> {
    const noted = request.then(
      () => undefined,
      (error: unknown) => this.note(error),
    );
    await Promise.race([noted, this.world.clock.sleep(CLIENT_TIMEOUT_MS)]);
  }

  private note(error: unknown): void {
    const code = error instanceof FencepostError ? error.code : String(error);
    if (!EXPECTED.includes(code)) this.absurd.push(`who subscribes was answered ${String(error)}`);
  }
}

/** The key that made the webhook, with its limits. */
function keyOf({ subscriber: { createdBy } }: SubscriberEntry): Principal {
  return CLERKS.get(createdBy ?? "") ?? ANYBODY;
}
