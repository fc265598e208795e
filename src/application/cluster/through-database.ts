/**
 * What only a lane's owner can do, for an owner that cannot be asked because it is embedded in another process: left in the
 * database, where the owner carries it out (take-requests.ts) and writes its answer. The sender waits for that, so that its
 * caller hears what it would have heard from the owner itself.
 *
 * Reads and writes: requests that were left. Writes nothing of a lane. What the owner has not begun in time is withdrawn, and
 * the caller is told that nothing was done; what it has begun and does not answer is told as unknown. A crash of this process
 * leaves a request that is carried out unheard, or never begun because its time is over.
 */
import { DatabaseSilent, type FencepostError, outcomeUnknown, queueFull, unavailable } from "../../domain/errors.ts";
import { jsonText } from "../../domain/json-text.ts";
import { type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { errorFrom } from "../../domain/refusal.ts";
import type { Entropy } from "../../ports/entropy.ts";
import { OutcomeUnknown } from "../../ports/lane-store.ts";
import type { LeftRequestStore, LeftStanding } from "../../ports/left-request-store.ts";
import type { LaneAnswer, LaneRequest } from "../../ports/peers.ts";
import type { Fate } from "./journey.ts";
import { Lookout, type LookoutPorts } from "./lookout.ts";

export interface ThroughDatabasePorts extends LookoutPorts {
  readonly store: Pick<LeftRequestStore, "leaveRequest" | "leftStanding" | "withdrawRequest">;
  readonly entropy: Pick<Entropy, "uuid">;
  /** How many may wait for one lane's owner. */
  readonly perLane: number;
  /** There are rows for owners to take up. */
  readonly onLeft: () => void;
}

interface Waiting {
  readonly key: LaneKey;
  readonly characters: number;
  /** Withdrawn then, unless it was begun; given up at the later time all the same. */
  readonly beginByMs: number;
  readonly answerByMs: number;
  resolve(fate: Fate<LaneAnswer>): void;
}

/** As long as a request that is forwarded has patience for. */
const BEGUN_WITHIN_MS = 4_000;
/** A request that was begun may wait for a send that is out, or for a transaction to stand still. */
const ANSWERED_WITHIN_MS = 8_000;

/** Of all that one process has waiting: rows are read by their owners as a whole, and kept in memory until they are answered. */
const MOST_CHARACTERS = 64 * 1024 * 1024;

const UNHEARD =
  "the process that acts for this signer did not say whether this was done; look whether it was before you repeat it";
const NOT_BEGUN =
  "the process that acts for this signer did not take this up in time, and will not any more; nothing was done, repeat it";

export class ThroughDatabase {
  private readonly ports: ThroughDatabasePorts;
  private readonly waiting = new Map<string, Waiting>();
  private readonly lookout: Lookout;

  constructor(ports: ThroughDatabasePorts) {
    this.ports = ports;
    const look = () => this.lookOnce();
    this.lookout = new Lookout(ports, { isAwaited: () => this.waiting.size > 0, look });
  }

  /** `onStands`: called once it is there for the owner to see; not where that did not come about. */
  async ask(lane: Lane, request: LaneRequest, onStands?: () => void): Promise<Fate<LaneAnswer>> {
    const { store, clock, entropy, onLeft } = this.ports;
    const { action, owner, repeatable = false } = request;
    const body = jsonText(request.body);
    const key = laneKey(lane);
    if (!this.hasRoom(key, body.length)) return queueFull();
    const leftId = entropy.uuid();
    const left = { leftId, lane, action, owner, repeatable, body };
    const nowMs = clock.monotonicMs();
    return new Promise((resolve) => {
      const times = { beginByMs: nowMs + BEGUN_WITHIN_MS, answerByMs: nowMs + ANSWERED_WITHIN_MS };
      this.waiting.set(leftId, { key, characters: body.length, ...times, resolve });
      store.leaveRequest(left, BEGUN_WITHIN_MS).then(
        () => {
          onLeft();
          onStands?.();
          void this.lookout.watch();
        },
        (error) => this.answer(leftId, notLeft(error)),
      );
    });
  }

  private hasRoom(key: LaneKey, characters: number): boolean {
    const waiting = [...this.waiting.values()];
    const all = waiting.reduce((sum, each) => sum + each.characters, characters);
    return all <= MOST_CHARACTERS && waiting.filter((each) => each.key === key).length < this.ports.perLane;
  }

  /** An owner has answered something. */
  look(): void {
    this.lookout.lookNow();
  }

  /** This process ends: what nobody has begun is withdrawn now, and the rest is unknown. */
  hurry(): void {
    this.lookout.hurry();
  }

  private async lookOnce(): Promise<void> {
    // A database that is away says nothing about them; past their time they are told so.
    await this.lookFor([...this.waiting]).catch(() => undefined);
    this.giveUp();
  }

  private async lookFor(all: readonly (readonly [string, Waiting])[]): Promise<void> {
    const { store, clock } = this.ports;
    for (const standing of await store.leftStanding(all.map(([leftId]) => leftId))) this.hear(standing);
    const nowMs = clock.monotonicMs();
    const late = all.filter(([leftId, { beginByMs }]) => {
      return this.waiting.has(leftId) && (this.lookout.isHurried || nowMs >= beginByMs);
    });
    for (const [leftId] of late) {
      if (await store.withdrawRequest(leftId)) this.answer(leftId, unavailable(NOT_BEGUN));
    }
  }

  private hear({ leftId, answer }: LeftStanding): void {
    if (answer !== null) this.answer(leftId, readAnswer(answer));
  }

  private giveUp(): void {
    const nowMs = this.ports.clock.monotonicMs();
    for (const [leftId, { answerByMs }] of this.waiting) {
      if (this.lookout.isHurried || nowMs >= answerByMs) this.answer(leftId, outcomeUnknown(UNHEARD));
    }
  }

  private answer(leftId: string, fate: Fate<LaneAnswer>): void {
    this.waiting.get(leftId)?.resolve(fate);
    this.waiting.delete(leftId);
  }
}

function notLeft(error: unknown): FencepostError {
  if (error instanceof OutcomeUnknown) return outcomeUnknown(UNHEARD, { cause: error });
  return new DatabaseSilent("nothing was done", error);
}

/** What cannot be read was done or refused in words of another version. It keeps no other answer from being heard. */
function readAnswer(text: string): Fate<LaneAnswer> {
  const said = parsed(text);
  if (said === null) return outcomeUnknown(UNHEARD);
  if (said.problem === undefined) return { answer: said.answer };
  const newer = "the process that acts for this signer refused this in words that only a newer version knows";
  return errorFrom(Object(said.problem)) ?? unavailable(newer);
}

function parsed(text: string): { readonly answer?: unknown; readonly problem?: unknown } | null {
  try {
    const said: unknown = JSON.parse(text);
    return typeof said === "object" ? said : null;
  } catch {
    return null;
  }
}
