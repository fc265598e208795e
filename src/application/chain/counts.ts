/**
 * How many transactions of a signer the chain counts: asked here alone. A caller that needs a count says how old it may
 * be, so that one answer serves all of a poll, and what is asked in one moment leaves in one request. What a count may
 * decide is for those who read it: one endpoint's word is a hint, and a cursor moves only by what endpoints agree on
 * (domain/counts.ts).
 *
 * Each question stands alone: one that fails or hangs keeps no other signer waiting.
 */
import type { CountAnswer } from "../../domain/counts.ts";
import type { Address } from "../../domain/lane.ts";
import type { Chain } from "../../ports/chain.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ChainSettings } from "../settings.ts";
import { Answers } from "./answers.ts";
import type { HeadFollower } from "./head-follower.ts";

type Tag = "latest" | "pending";

/** One endpoint's word. */
export interface CountFact {
  readonly count: number;
  /** How far this node had followed the chain when it asked. */
  readonly atBlock: number;
  /** Who said so. */
  readonly endpoint: string;
  /** Monotonic. */
  readonly askedAtMs: number;
}

export interface Freshness {
  /** An answer to a question that is younger than this serves as well; 0: it is asked anew. */
  readonly atMostMs: number;
}

/** The head of a line that does not move, and what the chain counted when it was last looked at. Monotonic. */
export interface StandingHead {
  readonly head: number;
  /** Where the chain stood when the head was first seen: who has come so far may say that nonces below it are unused. */
  readonly atBlock: number;
  readonly count: number | null;
  readonly dueMs: number;
}

/** What counts have told of one signer since its lane was last read from the database. */
export class CountMemory {
  /** When the count was asked for that was last compared with the cursor. Monotonic; null: it is to be asked anew. */
  comparedAtMs: number | null = null;
  /** What that comparison proved; no nonce below it is given, also while the cursor has not followed yet. */
  proven = 0;
  /** A mined count above the cursor that is not proved yet, and the block that the follower had come to when it was met. */
  claim: { readonly count: number; readonly atBlock: number } | null = null;
  /** A claim that could not be proved in time, and since when none could: creates are refused for it. For people to look at. */
  unproved: { readonly count: number; readonly since: Date } | null = null;
  /** The comparison that is under way, and counts: one that began before the last failure does not. */
  proving: Promise<number | null> | null = null;
  /** A mined count that a look has reported: a nonce below it that is not mined for us may be another program's. A hint. */
  reported = 0;
  /** Which head of line the count is next compared with, and when. Monotonic. */
  check: { readonly nonce: number; readonly dueMs: number } | null = null;
  standing: StandingHead | null = null;

  /** A batch failed: what was asked before, also where the answer is still on its way, was true for a batch that did not happen. */
  clear(): void {
    this.comparedAtMs = null;
    this.proving = null;
  }

  /** No nonce below may be given: the chain may have passed it. */
  get usedBelow(): number {
    return Math.max(this.proven, this.reported);
  }
}

/** As far as counting needs it. */
interface CountedChain {
  readonly chain: Pick<Chain, "transactionCount" | "transactionCountEverywhere" | "transactionCountAt">;
  readonly follower: Pick<HeadFollower, "head">;
  readonly settings: Pick<ChainSettings, "pollIntervalMs">;
}

export class Counts {
  private readonly context: CountedChain;
  private readonly clock: Clock;
  private readonly asked: Readonly<Record<Tag, Answers<Address, CountFact>>>;
  private readonly told = { latest: new Map<Address, number>(), pending: new Map<Address, number>() };
  private readonly memories = new Map<Address, CountMemory>();
  private waiting: { readonly dueMs: number; readonly over: Promise<void> } | null = null;

  constructor(context: CountedChain, clock: Clock) {
    this.context = context;
    this.clock = clock;
    this.asked = { latest: new Answers(clock), pending: new Answers(clock) };
  }

  /** By the word of one endpoint. Throws `ChainUnavailable`. */
  mined(signer: Address, { atMostMs }: Freshness): Promise<CountFact> {
    return this.ask(signer, "latest", atMostMs);
  }

  pending(signer: Address, { atMostMs }: Freshness): Promise<CountFact> {
    return this.ask(signer, "pending", atMostMs);
  }

  /** By the word of every endpoint that is up, asked anew; one that has not come to `atBlock` yet says so. */
  async everywhere(signer: Address, atBlock: number, tag: Tag = "latest"): Promise<readonly CountAnswer[]> {
    const answers = await this.context.chain.transactionCountEverywhere(signer, atBlock, tag);
    const said = answers.find(({ kind }) => kind === "says");
    if (said?.kind === "says") this.told[tag].set(signer, said.count);
    return answers;
  }

  /** As of a block; null where the endpoint no longer keeps that state. */
  at(signer: Address, blockNumber: number): Promise<number | null> {
    return this.context.chain.transactionCountAt(signer, blockNumber);
  }

  /** The last answer to any caller, for people to look at; nothing is asked for it, and nothing decided by it. */
  lastTold(signer: Address): Readonly<Record<Tag, number | null>> {
    return { latest: this.told.latest.get(signer) ?? null, pending: this.told.pending.get(signer) ?? null };
  }

  of(signer: Address): CountMemory {
    const known = this.memories.get(signer);
    if (known !== undefined) return known;
    const memory = new CountMemory();
    this.memories.set(signer, memory);
    return memory;
  }

  /** The lane was read again: what was believed before may have been a lie that an operator has just undone. */
  forget(signer: Address): void {
    this.memories.delete(signer);
  }

  /** A poll interval. Those who begin to wait in the same millisecond go on together, and so ask in one request. */
  nextPoll(): Promise<void> {
    const nowMs = this.clock.monotonicMs();
    const dueMs = Math.ceil(nowMs) + this.context.settings.pollIntervalMs;
    if (this.waiting?.dueMs !== dueMs) this.waiting = { dueMs, over: this.clock.sleep(dueMs - nowMs) };
    return this.waiting.over;
  }

  private ask(signer: Address, tag: Tag, atMostMs: number): Promise<CountFact> {
    return this.asked[tag].about(signer, atMostMs, async (askedAtMs) => {
      const atBlock = this.context.follower.head?.number ?? 0;
      const { count, endpoint } = await this.context.chain.transactionCount(signer, tag);
      this.told[tag].set(signer, count);
      return { count, endpoint, atBlock, askedAtMs };
    });
  }
}
