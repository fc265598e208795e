import type { ReceiverAnswer } from "../../../src/domain/webhooks/receiver-answers.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { WebhookMessage, WebhookSender } from "../../../src/ports/webhook-sender.ts";
import type { World, WorldNode } from "../world.ts";
import type { DeliveryWatch } from "./delivery-watch.ts";

/** URLs of all receivers. Several subscribers may have the same one. */
export const RECEIVERS = ["https://books.example/", "https://shop.example/hook", "https://audit.example/"] as const;

/** What a receiver does with one request: its answer, and the time in ms until then. */
interface Reaction {
  readonly answer: ReceiverAnswer;
  readonly ms: number;
}

type Mood = (dice: Dice, message: WebhookMessage) => Reaction;

const status = (code: number, retryAfterMs: number | null = null): ReceiverAnswer => {
  return { kind: "status", status: code, retryAfterMs };
};
const silence = (reason: string): ReceiverAnswer => ({ kind: "silence", reason });

const well: Mood = (dice) => ({ answer: status(dice.pick([200, 204, 299])), ms: dice.pick([0, 0, 0, 30]) });

/** Behaviours of a receiver by name. Each lasts until the next one begins. */
const MOODS: Readonly<Record<string, Mood>> = {
  well,
  late: (dice) => ({ answer: status(200), ms: dice.int(500, 8_000) }),
  failing: (dice) => ({ answer: status(dice.pick([500, 502, 404])), ms: 0 }),
  throttling: (dice) => ({ answer: status(dice.pick([429, 503]), dice.pick([null, 500, 4_000])), ms: 0 }),
  silent: (dice) => ({ answer: silence("no answer"), ms: dice.int(200, 10_000) }),
  gone: () => ({ answer: status(410), ms: 0 }),
  // It has taken the request, and denies it: the node must send it again.
  lying: (dice) => ({ answer: dice.pick([status(500), silence("connection reset")]), ms: 20 }),
  // One lane's outcomes fail. Those of the other lanes must not wait for it.
  picky: (dice, message) => (isOfFirstLane(message) ? { answer: status(422), ms: 0 } : well(dice, message)),
  moody: (dice, message) => dice.pick([well, well, MOODS.failing ?? well, MOODS.lying ?? well])(dice, message),
};
const NAMES = Object.keys(MOODS);

function isOfFirstLane({ event }: WebhookMessage) {
  return event.kind === "completion" && /a1$/.test(event.completion.lane.signer);
}

/**
 * Simulated receivers of webhooks: they take, refuse, lie, answer late or not at all, or are gone. A request that the
 * node gives up meanwhile gets no answer.
 */
export class Receivers {
  private readonly world: World;
  private readonly dice: Dice;
  private readonly watch: DeliveryWatch;
  private readonly moods = new Map<string, string>();

  constructor(world: World, dice: Dice, watch: DeliveryWatch) {
    this.world = world;
    this.dice = dice;
    this.watch = watch;
  }

  /** The sender of one node. `entry` returns null until the node exists. */
  senderOf(entry: () => WorldNode | null): WebhookSender {
    return {
      secretOf: ({ subscriberId, generation }) => {
        const secretId = `${subscriberId}/${generation}`;
        return { secret: `whsec_${secretId}`, secretId };
      },
      canSign: ({ subscriberId, generation }, secretId) => secretId === `${subscriberId}/${generation}`,
      send: (message) => {
        const node = entry();
        if (node === null) throw new Error("a node that does not exist yet delivers");
        const delivery = this.watch.begun(node, message);
        const answer = this.take(message);
        // The first reaction to this promise: the node's own comes next, so that nothing happens before it knows, too.
        void answer.then((given) => {
          if (message.signal?.aborted !== true) this.watch.answered(delivery, given);
        });
        return answer;
      },
    };
  }

  /** Follows the terms under which this node delivers. */
  follow(entry: WorldNode): void {
    this.watch.follow(entry);
  }

  /** Gives one receiver another mood. */
  change(): void {
    const url = this.dice.pick(RECEIVERS);
    const mood = this.dice.chance(0.4) ? "well" : this.dice.pick(NAMES);
    this.moods.set(url, mood);
  }

  heal(): void {
    this.moods.clear();
  }

  private async take(message: WebhookMessage): Promise<ReceiverAnswer> {
    const mood = MOODS[this.moods.get(message.url) ?? "well"] ?? well;
    const { answer, ms } = mood(this.dice, message);
    const isCut = ms > 0 && (await this.isCutWithin(ms, message.signal));
    return isCut ? silence("the node ended it") : answer;
  }

  private async isCutWithin(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
    return this.world.clock.sleep(ms, signal).then(
      () => false,
      () => true,
    );
  }
}
