import type { Confirmation } from "../../domain/chain/confirmations.ts";
import { FencepostError } from "../../domain/errors.ts";
import { type Content, ceilingsOf, type Priced, priceUnder } from "../../domain/fees/ceilings.ts";
import { type GasLimit, knownGasCap, lowerLimit } from "../../domain/fees/gas.ts";
import { keepNewest } from "../../domain/keep-newest.ts";
import type { Address, Hash } from "../../domain/lane.ts";
import { type BlockPace, blockSeen, isStalled, NO_BLOCKS, usualBlockMs } from "../../domain/pace/block-pace.ts";
import { at, isDue, NEVER, type When } from "../../domain/pace/when.ts";
import {
  type FeeMarket,
  type FeeWishes,
  isFullyPriced,
  NO_MARKET,
  priceFirstAttempt,
  sanityLimit,
  smaller,
} from "../../domain/transaction/fees.ts";
import type { Chain, SecondOpinion } from "../../ports/chain.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ports } from "../../ports/ports.ts";
import type { LaneIndex, OwnedLane } from "../lane/owned-lane.ts";
import type { ChainSettings } from "../settings.ts";
import { StandingAlerts } from "../standing-alerts.ts";
import { Answers } from "./answers.ts";
import { Counts } from "./counts.ts";
import { Disputes } from "./disputes.ts";
import { HeadFollower } from "./head-follower.ts";

const TAG_PATIENCE_MS = 60_000;

/** Transactions whose receipts are looked for by hash in one question, at most. */
export const LOOKS_AT_ONCE = 100;

/** One chain as this node knows it: the port, its settings, the head, the tracked hashes, and what may be asked once per block. */
export class ChainContext {
  readonly chain;
  readonly counts;
  /**
   * Latest values from one of the loops, for lists of many signers, which do not call the chain. Nothing is decided by
   * them.
   */
  readonly knownBalances = new Map<Address, bigint>();
  /** Latest fee market from one of the loops. Nothing is decided by it. */
  knownMarket: FeeMarket | null = null;
  readonly knownCode = new KnownCode();
  readonly settings;
  /** The settings in force: as configured, else by the chain's id. */
  readonly ceilings;
  readonly follower;
  readonly gasLimits;
  readonly hashes: LaneIndex["hashes"] = new Map();
  readonly onChain: LaneIndex["onChain"] = new Set();
  readonly disputes;
  /** Findings about this chain and its lanes that are not over. */
  readonly standing;
  reachable = true;
  /** Called if the next transaction of a lane can only be sent once the last is seen mined. Set by the chain's loop. */
  lookSoon: () => void = () => undefined;
  /** Batch size that the endpoints last accepted: halved after a poll without an answer, doubled after one with. */
  looksAtOnce = LOOKS_AT_ONCE;
  /** The first block of the chain as the database knows it, and as an endpoint last showed it. */
  genesisHash: Hash | null = null;
  seenGenesis: Hash | null = null;
  /** Wall-clock time of the first look that failed since the last that did not. */
  unreachableSince: Date | null = null;
  /** Wall-clock time at which this node first saw the head that it has; null: it has none. */
  headSince: Date | null = null;
  private blocks: BlockPace = NO_BLOCKS;
  private failedPasses = 0;
  /** Newest canonical block that this node stored; saves a write if nothing changed. */
  storedConfirmations: readonly Confirmation[] = [];
  private readonly ports;
  /** When it is to be said that the node does not know the tag that finality goes by; null: it does. */
  private tagAlert: When | null = null;
  private readonly markets: Answers<"market", FeeMarket>;
  private sanity: { readonly of: readonly bigint[]; readonly limit: bigint | null } | null = null;
  private readonly balances: Answers<Address, bigint>;
  private readonly opinions: Answers<number, SecondOpinion>;

  constructor(chain: Chain, settings: ChainSettings, ports: Pick<Ports, "clock" | "telemetry">) {
    this.chain = chain;
    this.settings = settings;
    this.ceilings = ceilingsOf(chain.chainId, settings);
    this.ports = ports;
    this.standing = new StandingAlerts(ports.telemetry);
    this.markets = new Answers(ports.clock);
    this.balances = new Answers(ports.clock);
    this.opinions = new Answers(ports.clock);
    this.follower = new HeadFollower(chain, ports.telemetry, settings);
    this.counts = new Counts(this, ports.clock);
    this.gasLimits = new GasLimits({
      chainId: chain.chainId,
      configured: settings.maxTransactionGas,
      clock: ports.clock,
      blockGasLimit: () => this.follower.head?.gasLimit ?? null,
    });
    this.disputes = new Disputes({ ...ports, chainId: chain.chainId, pollIntervalMs: settings.pollIntervalMs });
  }

  /** The head was looked at and may be another one. */
  noteHead(): void {
    const { head } = this.follower;
    if (head === null || head.number === this.blocks.head) return;
    this.blocks = blockSeen(this.blocks, head.number, this.ports.clock.monotonicMs());
    this.headSince = this.ports.clock.now();
  }

  /** Usual time between blocks; null: unknown. */
  get usualBlockMs(): number | null {
    return usualBlockMs(this.blocks);
  }

  /**
   * The endpoints answer, and no block comes. `lanes`: whose transactions wait for one. Unsent or held back, they wait for
   * something else, and a chain that mines on demand has no block to make for them.
   */
  isStalled(lanes: readonly OwnedLane[]): boolean {
    const { clock } = this.ports;
    const sentAt = lanes.flatMap(({ mined, unmined }) => [
      ...[...unmined.values()].flatMap(({ held, firstSentAt }) => (held ? [] : (firstSentAt?.getTime() ?? []))),
      // A mined one waits for the next block since the newest came.
      ...(mined.size > 0 ? [0] : []),
    ]);
    const awaitedMs = sentAt.length === 0 ? null : clock.now().getTime() - Math.min(...sentAt);
    return this.reachable && isStalled(this.blocks, clock.monotonicMs(), awaitedMs);
  }

  /** A pass over the chain failed for a reason of our own: reported once until a pass is whole again. */
  passFailed(message: string): void {
    this.failedPasses++;
    this.standing.raise({ severity: "ERROR", code: "PASS_FAILED", message, chainId: this.chain.chainId });
  }

  /** `work` says whether every lane could be judged; a lane that could not may be the reason of the failure before. */
  async endingFailures(work: () => Promise<boolean>): Promise<void> {
    const { chainId } = this.chain;
    const before = this.failedPasses;
    if ((await work()) && this.failedPasses === before)
      this.standing.resolve({ code: "PASS_FAILED", chainId }, `a pass over chain ${chainId} was whole`);
  }

  /** A new head: what was asked of the one before is out of date. */
  forget(): void {
    this.markets.clear();
    this.balances.clear();
    this.opinions.clear();
  }

  /** A young chain has no such block yet; one that has none that can be gone by after a while may never have one. */
  noteTag(tag: "safe" | "finalized", known: boolean): void {
    const { chainId } = this.chain;
    const code = "FINALITY_TAG_MISSING";
    if (known) this.standing.resolve({ code, chainId }, `chain ${chainId} has a ${tag} block that can be gone by`);
    const nowMs = this.ports.clock.monotonicMs();
    this.tagAlert = known ? null : (this.tagAlert ?? at(nowMs + TAG_PATIENCE_MS));
    if (this.tagAlert === null || !isDue(this.tagAlert, nowMs)) return;
    this.tagAlert = NEVER;
    const message = `chain ${chainId} has had no ${tag} block that its endpoints agree on for a minute, and finality goes by it: nothing is decided; check them, or use confirmations`;
    this.standing.raise({ severity: "ERROR", code, message, chainId });
  }

  /** First price of this payload: the caller's fees, else the market's, never above the ceilings. */
  async price(wishes: FeeWishes, content: Content): Promise<Priced> {
    return this.priceOn(await this.marketFor(wishes), wishes, content);
  }

  priceOn(market: FeeMarket, wishes: FeeWishes, content: Content): Priced {
    return priceUnder(this.ceilings, content, priceFirstAttempt(market, wishes, this.usualLimit(market)));
  }

  /** Fees from the caller need no market: such a transaction can be priced while the chain is away. */
  marketFor(wishes: FeeWishes): Promise<FeeMarket> {
    return isFullyPriced(wishes) ? Promise.resolve(NO_MARKET) : this.feeMarket();
  }

  /** Base fees that confirm a market: its own if two endpoints have the header, else those of the followed blocks. */
  seenBaseFees({ agreed, baseFees }: FeeMarket): readonly bigint[] {
    return agreed === true ? baseFees : this.follower.seenBaseFees;
  }

  /** A market that is one endpoint's word may be false with all its history: the blocks that were followed bound it, too. */
  private usualLimit(market: FeeMarket) {
    const seenBaseFees = this.seenBaseFees(market);
    if (this.sanity?.of !== seenBaseFees) this.sanity = { of: seenBaseFees, limit: sanityLimit(seenBaseFees) };
    return this.sanity.limit;
  }

  /** Base fee for a refusal: the lower one of the newest block and of the last market that two endpoints agreed on. */
  get leastBaseFee(): bigint | null {
    const { baseFee } = this.follower;
    const agreed = this.knownMarket?.agreed === true ? this.knownMarket.baseFees.at(-1) : undefined;
    return baseFee === null || agreed === undefined ? baseFee : smaller(baseFee, agreed);
  }

  feeMarket(): Promise<FeeMarket> {
    return this.markets.about("market", this.settings.pollIntervalMs, async () => {
      const market = await this.chain.feeMarket();
      this.disputes.notePrices(market.disputed ?? null);
      this.knownMarket = market;
      return market;
    });
  }

  balance(address: Address): Promise<bigint> {
    return this.balances.about(address, this.settings.pollIntervalMs, () => this.askBalance(address));
  }

  async askBalance(address: Address): Promise<bigint> {
    const balance = await this.chain.balance(address);
    this.knownBalances.set(address, balance);
    return balance;
  }

  /** The block at a height by two endpoints: requested once for all lanes that have something there. */
  secondOpinion(blockNumber: number): Promise<SecondOpinion> {
    return this.opinions.about(blockNumber, this.settings.pollIntervalMs, () => this.chain.secondOpinion(blockNumber));
  }
}

interface Configured {
  readonly chains: readonly { readonly chain: Chain; readonly settings: ChainSettings }[];
}

/** Every chain that is configured. */
export function contextsOf(ports: Pick<Ports, "clock" | "telemetry"> & Configured): ReadonlyMap<number, ChainContext> {
  const contexts = ports.chains.map(({ chain, settings }) => new ChainContext(chain, settings, ports));
  return new Map(contexts.map((context) => [context.chain.chainId, context]));
}

/** The chain that a caller asks for. */
export function askedFor(chains: ReadonlyMap<number, ChainContext>, chainId: number): ChainContext {
  const context = chains.get(chainId);
  if (context === undefined) throw new FencepostError("UNKNOWN_CHAIN", `chain ${chainId} is not configured here`);
  return context;
}

/** Canonical hash by height: from the frozen view if it reaches that far, else from one batch of requests. */
export async function canonicalHashes(
  context: ChainContext,
  numbers: readonly number[],
): Promise<ReadonlyMap<number, Hash>> {
  const { window } = context.follower;
  const hashes = new Map<number, Hash>();
  const below = new Set<number>();
  for (const number of numbers) {
    const known = window.hashAt(number);
    if (known !== null) hashes.set(number, known);
    else if (window.oldest !== null && number < window.oldest.number) below.add(number);
  }
  const asked = [...below];
  if (asked.length === 0) return hashes;
  const blocks = await context.chain.blocksByNumber(asked);
  for (const block of blocks) if (block !== null) hashes.set(block.number, block.hash);
  return hashes;
}

/** Enough for a busy node's callers; the oldest entries are removed. */
const MOST_KEPT = 10_000;

/**
 * Addresses that have, or had, code. It only ever permits: a reorg may take code away again, and a contract may destroy
 * itself, but what has been a contract is no mistyped address.
 */
export class KnownCode {
  private readonly addresses = new Map<Address, "seen" | "deployed">();

  /** An endpoint has shown its code: there is nothing more to ask. */
  isSeen(address: Address): boolean {
    return this.addresses.get(address) === "seen";
  }

  /** Known by its code, or by a receipt of its deployment, which lagging endpoints do not have yet. */
  isKnown(address: Address): boolean {
    return this.addresses.has(address);
  }

  see(address: Address): void {
    this.keep(address, "seen");
  }

  deploy(address: Address): void {
    if (!this.addresses.has(address)) this.keep(address, "deployed");
  }

  private keep(address: Address, how: "seen" | "deployed") {
    if (this.addresses.get(address) === how) return;
    keepNewest(this.addresses, address, how, MOST_KEPT);
  }
}

/**
 * The most gas that a transaction may ask for on one chain. Its block says one limit; the other, for a single transaction,
 * is what the settings say, else what is known of the chain by its id, else what a node named when it refused a payload.
 *
 * Reads: the followed head. Writes: nothing durable. A crash forgets what was learned; the next refusal teaches it again.
 */

/** A learned limit is used for this long: a chain may raise its cap, and one refusal may have been a mistake. */
const LEARNED_FOR_MS = 60 * 60_000;
/** Below every cap that is in use: one endpoint that names less would have most creates refused. It is not believed. */
const LEAST_CAP = 1_000_000n;

interface Options {
  readonly chainId: number;
  /** Null: not configured. */
  readonly configured: bigint | null;
  readonly clock: Clock;
  readonly blockGasLimit: () => bigint | null;
}

export class GasLimits {
  private readonly options;
  private learned: { readonly cap: bigint; readonly untilMs: number } | null = null;

  constructor(options: Options) {
    this.options = options;
  }

  /** Null: neither a block was seen nor a cap is known. */
  get most(): GasLimit | null {
    return lowerLimit(this.options.blockGasLimit(), this.cap);
  }

  /** For one transaction, however large the block; null: none is known. */
  get cap(): bigint | null {
    const { chainId, configured } = this.options;
    return configured ?? knownGasCap(chainId) ?? this.fresh();
  }

  /** Every node that was asked refused `gas`, and named `cap` as the most it takes. */
  learn(cap: bigint, gas: bigint): void {
    if (cap < LEAST_CAP || cap >= gas) return;
    this.learned = { cap, untilMs: this.options.clock.monotonicMs() + LEARNED_FOR_MS };
  }

  private fresh() {
    if (this.learned !== null && this.options.clock.monotonicMs() >= this.learned.untilMs) this.learned = null;
    return this.learned?.cap ?? null;
  }
}
