/**
 * Creates for an owner that cannot be asked, because it is embedded in another process: left in the intake table, which
 * every owner reads. The sender then waits for what becomes of them, so that a caller hears the nonce, or why it is
 * refused, as if the owner had been asked. Only for so long: past that it is accepted without a nonce, as CREATED.
 *
 * Reads and writes: the intake table. Invariants: I4, I5. Until it is accepted here the owner may decline it without a
 * trace, and nobody was told of it; afterwards it reaches a final state. A crash of this process in between leaves an
 * intent that is taken up or declined unheard, as a create whose answer was lost. Its repeat finds it by its request id.
 */
import { FencepostError, queueFull, unavailable } from "../../domain/errors.ts";
import { type LaneKey, laneKey } from "../../domain/lane.ts";
import { errorFrom } from "../../domain/refusal.ts";
import type { Intent } from "../../domain/transaction.ts";
import type { Became, IntakeStore } from "../../ports/intake-store.ts";
import { BatchRefused } from "../../ports/lane-store.ts";
import type { ForwardedAnswer } from "../../ports/peers.ts";
import { failureOf, untold } from "../requests/unanswered.ts";
import type { Fate } from "./journey.ts";
import { Lookout, type LookoutPorts } from "./lookout.ts";

export interface ThroughIntakePorts extends LookoutPorts {
  readonly store: IntakeStore;
  /** How many may wait for one lane's owner. */
  readonly perLane: number;
  /** There are rows for owners to take up. */
  readonly onLeft: () => void;
}

interface Waiting {
  readonly intent: Intent;
  readonly untilMs: number;
  resolve(fate: Fate<ForwardedAnswer>): void;
}

interface Unsent {
  readonly intent: Intent;
  resolve(): void;
  reject(error: unknown): void;
}

/** As long as a create that is forwarded has patience for: a lane of a dead owner changes hands within it, mostly. */
const PATIENCE_MS = 4_000;
const MOST_AT_ONCE = 200;

export class ThroughIntake {
  private readonly ports: ThroughIntakePorts;
  private readonly waiting = new Map<string, Waiting>();
  private readonly underWay = new Map<LaneKey, number>();
  /** Of each key on each lane. */
  private readonly ofKeys = new Map<string, number>();
  private unsent: Unsent[] = [];
  private isSending = false;
  private readonly lookout: Lookout;

  constructor(ports: ThroughIntakePorts) {
    this.ports = ports;
    const look = () => this.lookOnce();
    this.lookout = new Lookout(ports, { isAwaited: () => this.waiting.size > 0, look });
  }

  /** One fate for each, in order. */
  leave(intents: readonly Intent[]): Promise<readonly Fate<ForwardedAnswer>[]> {
    return Promise.all(intents.map((intent) => this.leaveOne(intent)));
  }

  /** How many of the same lane and API key wait here. */
  leaving(intent: Pick<Intent, "lane" | "owner">): number {
    return this.ofKeys.get(keyOf(intent)) ?? 0;
  }

  /** An owner has taken something up, or declined it. */
  look(): void {
    this.lookout.lookNow();
  }

  /** This process ends: whatever waits is accepted now, and taken up by whoever is the owner then. */
  hurry(): void {
    this.lookout.hurry();
  }

  private async leaveOne(intent: Intent): Promise<Fate<ForwardedAnswer>> {
    const key = laneKey(intent.lane);
    const before = this.underWay.get(key) ?? 0;
    if (before >= this.ports.perLane) return queueFull();
    this.underWay.set(key, before + 1);
    this.ofKeys.set(keyOf(intent), this.leaving(intent) + 1);
    try {
      await this.insert(intent);
      return await this.awaitOwner(intent);
    } catch (error) {
      return failureOf(error, intent.txId);
    } finally {
      const left = (this.underWay.get(key) ?? 1) - 1;
      if (left === 0) this.underWay.delete(key);
      else this.underWay.set(key, left);
      const others = this.leaving(intent) - 1;
      if (others === 0) this.ofKeys.delete(keyOf(intent));
      else this.ofKeys.set(keyOf(intent), others);
    }
  }

  private insert(intent: Intent): Promise<void> {
    return new Promise((resolve, reject) => {
      this.unsent.push({ intent, resolve, reject });
      void this.send();
    });
  }

  /** One write at a time, so that intents stand there in the order of the calls; those that come meanwhile share the next. */
  private async send(): Promise<void> {
    if (this.isSending) return;
    this.isSending = true;
    await Promise.resolve();
    while (this.unsent.length > 0) await this.write(this.unsent.splice(0, MOST_AT_ONCE));
    this.isSending = false;
  }

  private async write(parcel: readonly Unsent[]): Promise<void> {
    try {
      await this.ports.store.leave(parcel.map(({ intent }) => intent));
      for (const { resolve } of parcel) resolve();
      this.ports.onLeft();
    } catch (error) {
      // One that the database cannot hold fails alone.
      if (error instanceof BatchRefused && parcel.length > 1) for (const each of parcel) await this.write([each]);
      else for (const { reject } of parcel) reject(error);
    }
  }

  private awaitOwner(intent: Intent): Promise<Fate<ForwardedAnswer>> {
    return new Promise((resolve) => {
      const untilMs = this.ports.clock.monotonicMs() + PATIENCE_MS;
      this.waiting.set(intent.txId, { intent, untilMs, resolve });
      void this.lookout.watch();
    });
  }

  private async lookOnce(): Promise<void> {
    // A database that is away says nothing about them; past their time they are told so.
    await this.lookFor([...this.waiting.keys()]).catch(() => undefined);
    await this.acceptOverdue();
  }

  private async lookFor(txIds: readonly string[]): Promise<void> {
    for (const became of await this.ports.store.whatBecame(txIds)) {
      const { intent } = this.waiting.get(became.leftAs) ?? {};
      const fate = intent === undefined ? null : fateOf(intent, became);
      if (fate !== null) this.answer(became.leftAs, fate);
    }
  }

  /** Whoever comes first: the owner declines nothing that was accepted, and what it declined is not accepted any more. */
  private async acceptOverdue(): Promise<void> {
    const nowMs = this.ports.clock.monotonicMs();
    const overdue = [...this.waiting.values()].filter(({ untilMs }) => this.lookout.isHurried || nowMs >= untilMs);
    if (overdue.length === 0) return;
    const ids = overdue.map(({ intent }) => intent.txId);
    try {
      for (const txId of await this.ports.store.accept(ids)) {
        const waiting = this.waiting.get(txId);
        if (waiting !== undefined) this.answer(txId, created(waiting.intent, { nonce: null, state: "CREATED" }));
      }
      await this.lookFor(ids);
    } catch (error) {
      for (const txId of ids) this.answer(txId, untold(txId, error));
    }
    // Nowhere: the database's history changed.
    for (const txId of ids) this.answer(txId, untold(txId));
  }

  private answer(txId: string, fate: Fate<ForwardedAnswer>): void {
    this.waiting.get(txId)?.resolve(fate);
    this.waiting.delete(txId);
  }
}

function keyOf({ lane, owner }: Pick<Intent, "lane" | "owner">): string {
  return `${laneKey(lane)} ${owner}`;
}

function created({ txId, lane, requestId }: Intent, { nonce, state }: Pick<ForwardedAnswer, "nonce" | "state">) {
  return { outcome: "created", txId, lane, requestId, nonce, state } as const;
}

/** Null: nothing has become of it yet. */
function fateOf(intent: Intent, became: Became): Fate<ForwardedAnswer> | null {
  if (became.kind === "waiting") return null;
  if (became.kind === "declined") {
    const error = became.problem === null ? null : errorFrom({ ...became.problem });
    return (
      error ?? unavailable("the node that acts for this signer refused this in words that only a newer version knows")
    );
  }
  const { txId, nonce, state, subState, lastError } = became;
  if (txId !== intent.txId) return { ...created(intent, became), outcome: "existing", txId };
  if (nonce !== null || state !== "FAILED_FINAL") return created(intent, became);
  // By a node of an older version, which declines nothing.
  const code = subState === "REQUEST_ID_REUSED" ? subState : "SUBMISSION_REJECTED";
  return new FencepostError(code, lastError ?? "refused by the node that acts for this signer", { txId });
}
