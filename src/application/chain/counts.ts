/**
 * The chain's transaction counts of signers, requested only here. A caller states how old a count may be, so that one
 * answer serves a whole poll; simultaneous requests are sent together. A count from one endpoint is only a hint. The
 * chain's counts change a lane's next nonce only if endpoints agree on them (domain/chain/counts.ts).
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

interface KnownCount {
  readonly count: number;
  readonly at: Date;
}

/** A signer's transaction count as one endpoint reported it. */
export interface CountFact {
  readonly count: number;
  /** Height of the newest block that this node knew when it requested the count. */
  readonly atBlock: number;
  /** The endpoint that reported the count. */
  readonly endpoint: string;
  /** Monotonic time of the request in ms. */
  readonly askedAtMs: number;
}

export interface Freshness {
  /** Maximum age in ms of a cached answer; 0 sends a new request. */
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
  private readonly known = { latest: new Map<Address, KnownCount>(), pending: new Map<Address, KnownCount>() };
  private waiting: { readonly dueMs: number; readonly over: Promise<void> } | null = null;

  constructor(context: CountedChain, clock: Clock) {
    this.context = context;
    this.clock = clock;
    this.asked = { latest: new Answers(clock), pending: new Answers(clock) };
  }

  /** The signer's mined transaction count from one endpoint. Throws `ChainUnavailable`. */
  mined(signer: Address, { atMostMs }: Freshness): Promise<CountFact> {
    return this.ask(signer, "latest", atMostMs);
  }

  pending(signer: Address, { atMostMs }: Freshness): Promise<CountFact> {
    return this.ask(signer, "pending", atMostMs);
  }

  /**
   * A signer's counts from every endpoint that is up, newly requested; an endpoint that has not reached `atBlock` yet
   * is marked as behind.
   */
  async everywhere(signer: Address, atBlock: number, tag: Tag = "latest"): Promise<readonly CountAnswer[]> {
    const answers = await this.context.chain.transactionCountEverywhere(signer, atBlock, tag);
    const said = answers.find(({ kind }) => kind === "says");
    if (said?.kind === "says") this.note(tag, signer, said.count);
    return answers;
  }

  /** A signer's transaction count as of a block; null if the endpoint no longer keeps that block's state. */
  at(signer: Address, blockNumber: number): Promise<number | null> {
    return this.context.chain.transactionCountAt(signer, blockNumber);
  }

  /**
   * The last counts that were read for any caller, and when the older of the two was read; for display only. Sends no
   * request; no decision uses these counts.
   */
  lastKnown(signer: Address): Readonly<Record<Tag, number | null>> & { readonly asOf: Date | null } {
    const latest = this.known.latest.get(signer);
    const pending = this.known.pending.get(signer);
    const [asOf = null] = [latest, pending].flatMap((each) => each?.at ?? []).sort((a, b) => a.getTime() - b.getTime());
    return { latest: latest?.count ?? null, pending: pending?.count ?? null, asOf };
  }

  /**
   * Waits for one poll interval. Callers that begin to wait in the same millisecond resume together, so that their
   * requests form one batch.
   */
  nextPoll(): Promise<void> {
    const nowMs = this.clock.monotonicMs();
    const dueMs = Math.ceil(nowMs) + this.context.settings.pollIntervalMs;
    if (this.waiting?.dueMs !== dueMs) this.waiting = { dueMs, over: this.clock.sleep(dueMs - nowMs) };
    return this.waiting.over;
  }

  private note(tag: Tag, signer: Address, count: number) {
    this.known[tag].set(signer, { count, at: this.clock.now() });
  }

  private ask(signer: Address, tag: Tag, atMostMs: number) {
    return this.asked[tag].about(signer, atMostMs, async (askedAtMs) => {
      const atBlock = this.context.follower.head?.number ?? 0;
      const { count, endpoint } = await this.context.chain.transactionCount(signer, tag);
      this.note(tag, signer, count);
      return { count, endpoint, atBlock, askedAtMs };
    });
  }
}
