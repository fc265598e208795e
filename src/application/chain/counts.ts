/**
 * The chain's transaction counts of signers: requested only here. A caller that needs a count says how old it may be,
 * so that one answer serves all of a poll, and requests of one moment leave together. A count of one endpoint is a
 * hint; a cursor moves only by counts that endpoints agree on (domain/counts.ts).
 *
 * Each request is independent: one that fails or hangs delays no other signer.
 */
import type { CountAnswer } from "../../domain/chain/counts.ts";
import type { Address } from "../../domain/lane.ts";
import type { Chain } from "../../ports/chain.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ChainSettings } from "../settings.ts";
import { Answers } from "./answers.ts";
import type { HeadFollower } from "./head-follower.ts";

type Tag = "latest" | "pending";

/** A signer's count, as one endpoint reported it. */
export interface CountFact {
  readonly count: number;
  /** How far this node had followed the chain when it asked. */
  readonly atBlock: number;
  /** The endpoint that said so. */
  readonly endpoint: string;
  /** Monotonic. */
  readonly askedAtMs: number;
}

export interface Freshness {
  /** An answer to a question that is younger than this serves as well; 0: it is asked anew. */
  readonly atMostMs: number;
}

/** The part of the chain context that counting needs. */
interface CountedChain {
  readonly chain: Pick<Chain, "transactionCount" | "transactionCountEverywhere" | "transactionCountAt">;
  readonly follower: Pick<HeadFollower, "head">;
  readonly settings: Pick<ChainSettings, "pollIntervalMs">;
}

export class Counts {
  private readonly context;
  private readonly clock;
  private readonly asked: Readonly<Record<Tag, Answers<Address, CountFact>>>;
  private readonly known = { latest: new Map<Address, number>(), pending: new Map<Address, number>() };
  private waiting: { readonly dueMs: number; readonly over: Promise<void> } | null = null;

  constructor(context: CountedChain, clock: Clock) {
    this.context = context;
    this.clock = clock;
    this.asked = { latest: new Answers(clock), pending: new Answers(clock) };
  }

  /** The count of one endpoint. Throws `ChainUnavailable`. */
  mined(signer: Address, { atMostMs }: Freshness): Promise<CountFact> {
    return this.ask(signer, "latest", atMostMs);
  }

  pending(signer: Address, { atMostMs }: Freshness): Promise<CountFact> {
    return this.ask(signer, "pending", atMostMs);
  }

  /**
   * The counts of every endpoint that is up, requested anew; an endpoint that has not reached `atBlock` yet says so.
   */
  async everywhere(signer: Address, atBlock: number, tag: Tag = "latest"): Promise<readonly CountAnswer[]> {
    const answers = await this.context.chain.transactionCountEverywhere(signer, atBlock, tag);
    const said = answers.find(({ kind }) => kind === "says");
    if (said?.kind === "says") this.known[tag].set(signer, said.count);
    return answers;
  }

  /** Count as of a block; null if the endpoint no longer keeps that state. */
  at(signer: Address, blockNumber: number): Promise<number | null> {
    return this.context.chain.transactionCountAt(signer, blockNumber);
  }

  /** The last answer to any caller, for people to look at; nothing is asked for it, and nothing decided by it. */
  lastKnown(signer: Address): Readonly<Record<Tag, number | null>> {
    return { latest: this.known.latest.get(signer) ?? null, pending: this.known.pending.get(signer) ?? null };
  }

  /** A poll interval. Those who begin to wait in the same millisecond go on together, and so ask in one request. */
  nextPoll(): Promise<void> {
    const nowMs = this.clock.monotonicMs();
    const dueMs = Math.ceil(nowMs) + this.context.settings.pollIntervalMs;
    if (this.waiting?.dueMs !== dueMs) this.waiting = { dueMs, over: this.clock.sleep(dueMs - nowMs) };
    return this.waiting.over;
  }

  private ask(signer: Address, tag: Tag, atMostMs: number) {
    return this.asked[tag].about(signer, atMostMs, async (askedAtMs) => {
      const atBlock = this.context.follower.head?.number ?? 0;
      const { count, endpoint } = await this.context.chain.transactionCount(signer, tag);
      this.known[tag].set(signer, count);
      return { count, endpoint, atBlock, askedAtMs };
    });
  }
}
