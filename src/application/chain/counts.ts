/**
 * How many transactions of a signer the chain counts: nobody else asks for that. Whoever needs a count says how old it may
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
  /** The comparison that is under way. */
  proving: Promise<number | null> | null = null;
  /** A mined count that a look has reported: what lies below and is not mined for us may be somebody else's. A hint. */
  reported = 0;
  /** Which head of line the count is next compared with, and when. Monotonic. */
  check: { readonly nonce: number; readonly dueMs: number } | null = null;
  standing: StandingHead | null = null;

  /** No nonce below may be given: the chain may have passed it. */
  get usedBelow(): number {
    return Math.max(this.proven, this.reported);
  }
}

export interface CountsOptions {
  readonly chain: Pick<Chain, "transactionCount" | "transactionCountEverywhere" | "transactionCountAt">;
  readonly clock: Clock;
  readonly pollIntervalMs: number;
  /** How far the chain has been followed. */
  readonly height: () => number;
}

interface Question {
  readonly askedAtMs: number;
  readonly answer: Promise<CountFact>;
}

/** The last word on each count, for people to look at. */
interface Told {
  readonly latest: number | null;
  readonly pending: number | null;
}

const NOTHING_TOLD: Told = { latest: null, pending: null };

export class Counts {
  private readonly options: CountsOptions;
  private readonly asked: Readonly<Record<Tag, Map<Address, Question>>> = { latest: new Map(), pending: new Map() };
  private readonly told = new Map<Address, Told>();
  private readonly memories = new Map<Address, CountMemory>();
  private waiting: { readonly dueMs: number; readonly over: Promise<void> } | null = null;

  constructor(options: CountsOptions) {
    this.options = options;
  }

  /** By the word of one endpoint. Throws `ChainUnavailable`. */
  mined(signer: Address, freshness: Freshness): Promise<CountFact> {
    return this.ask(signer, "latest", freshness);
  }

  pending(signer: Address, freshness: Freshness): Promise<CountFact> {
    return this.ask(signer, "pending", freshness);
  }

  /** By the word of every endpoint that is up, asked anew; one that has not come to `atBlock` yet says so. */
  async everywhere(signer: Address, atBlock: number, tag: Tag = "latest"): Promise<readonly CountAnswer[]> {
    const answers = await this.options.chain.transactionCountEverywhere(signer, atBlock, tag);
    const said = answers.find(({ kind }) => kind === "says");
    if (said?.kind === "says") this.note(signer, { [tag]: said.count });
    return answers;
  }

  /** As of a block; null where the endpoint no longer keeps that state. */
  at(signer: Address, blockNumber: number): Promise<number | null> {
    return this.options.chain.transactionCountAt(signer, blockNumber);
  }

  /** What was last said, to whomever; nothing is asked for it. */
  lastTold(signer: Address): Told {
    return this.told.get(signer) ?? NOTHING_TOLD;
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
    const { clock, pollIntervalMs } = this.options;
    const nowMs = clock.monotonicMs();
    const dueMs = Math.ceil(nowMs) + pollIntervalMs;
    if (this.waiting?.dueMs !== dueMs) this.waiting = { dueMs, over: clock.sleep(dueMs - nowMs) };
    return this.waiting.over;
  }

  private ask(signer: Address, tag: Tag, { atMostMs }: Freshness): Promise<CountFact> {
    const asked = this.asked[tag];
    const askedAtMs = this.options.clock.monotonicMs();
    const known = asked.get(signer);
    if (known !== undefined && askedAtMs - known.askedAtMs < atMostMs) return known.answer;
    const question = { askedAtMs, answer: this.askNow(signer, tag, askedAtMs) };
    asked.set(signer, question);
    // A failure serves only those who already wait for it.
    question.answer.catch(() => {
      if (asked.get(signer) === question) asked.delete(signer);
    });
    return question.answer;
  }

  private async askNow(signer: Address, tag: Tag, askedAtMs: number): Promise<CountFact> {
    const atBlock = this.options.height();
    const { count, endpoint } = await this.options.chain.transactionCount(signer, tag);
    this.note(signer, { [tag]: count });
    return { count, endpoint, atBlock, askedAtMs };
  }

  private note(signer: Address, told: Partial<Told>): void {
    this.told.set(signer, { ...this.lastTold(signer), ...told });
  }
}
