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
import { FeeMarkets } from "./fee-markets.ts";
import { HeadFollower } from "./head-follower.ts";
import { KnownBalances } from "./known-balances.ts";

const TAG_PATIENCE_MS = 60_000;

/** Maximum number of transactions whose receipts are looked up by hash in one request. */
export const LOOKS_AT_ONCE = 100;

/**
 * One chain as this node sees it: its port and settings, the newest block, the hashes of our open transactions, and
 * cached values that are requested at most once per block.
 */
export class ChainContext {
  readonly chain;
  readonly counts;
  /**
   * Last known balances, possibly old: for lists and warnings, which do not call the chain, and for the choice of a
   * pool's signer.
   */
  readonly knownBalances;
  readonly knownCode = new KnownCode();
  readonly settings;
  /** Fee ceilings in force: as configured, else the defaults for the chain's id. */
  readonly ceilings;
  readonly follower;
  readonly gasLimits;
  readonly hashes: LaneIndex["hashes"] = new Map();
  readonly onChain: LaneIndex["onChain"] = new Set();
  readonly disputes;
  /** Alerts about this chain and its lanes that are not resolved yet. */
  readonly standing;
  reachable = true;
  /**
   * Requests an early poll of the newest block. Called if a lane can send its next transaction only after the previous
   * one was seen mined. Set by the chain's loop.
   */
  lookSoon: () => void = () => undefined;
  /**
   * Number of receipts requested in one batch: halved if the endpoints did not answer the last batch, doubled if they
   * did.
   */
  looksAtOnce = LOOKS_AT_ONCE;
  /** Hash of the chain's first block: the stored one, and the one that an endpoint last returned. */
  genesisHash: Hash | null = null;
  seenGenesis: Hash | null = null;
  /** Wall-clock time of the first failed poll since the last successful one; null while the chain is reachable. */
  unreachableSince: Date | null = null;
  /**
   * Wall-clock time at which this node first saw the block that is now the chain's newest; null if it has seen none
   * yet.
   */
  headSince: Date | null = null;
  private blocks: BlockPace = NO_BLOCKS;
  private failedPasses = 0;
  /**
   * The newest canonical blocks as this node last stored them. Kept in memory, so that nothing is written if they did
   * not change.
   */
  storedConfirmations: readonly Confirmation[] = [];
  private readonly ports;
  /** When to alert that the chain's node does not support the block tag used for finality; null if it does. */
  private tagAlert: When | null = null;
  private readonly markets: FeeMarkets;
  private sanity: { readonly of: readonly bigint[]; readonly limit: bigint | null } | null = null;
  private readonly balances: Answers<Address, bigint>;
  private readonly opinions: Answers<number, SecondOpinion>;

  constructor(chain: Chain, settings: ChainSettings, ports: Pick<Ports, "clock" | "telemetry">) {
    this.chain = chain;
    this.settings = settings;
    this.ceilings = ceilingsOf(chain.chainId, settings);
    this.ports = ports;
    this.standing = new StandingAlerts(ports.telemetry);
    this.markets = new FeeMarkets(() => this.askMarket(), ports.clock, settings);
    this.balances = new Answers(ports.clock);
    this.opinions = new Answers(ports.clock);
    this.follower = new HeadFollower(chain, ports.telemetry, settings);
    this.counts = new Counts(this, ports.clock);
    this.knownBalances = new KnownBalances(ports.clock);
    this.gasLimits = new GasLimits({
      chainId: chain.chainId,
      configured: settings.maxTransactionGas,
      clock: ports.clock,
      blockGasLimit: () => this.follower.head?.gasLimit ?? null,
    });
    this.disputes = new Disputes({ ...ports, chainId: chain.chainId, pollIntervalMs: settings.pollIntervalMs });
  }

  /** Called after each poll for the newest block, which may have changed. */
  noteHead(): void {
    const { head } = this.follower;
    if (head === null || head.number === this.blocks.head) return;
    this.blocks = blockSeen(this.blocks, head.number, this.ports.clock.monotonicMs());
    this.headSince = this.ports.clock.now();
  }

  /** Usual time between blocks in ms; null if unknown. */
  get usualBlockMs(): number | null {
    return usualBlockMs(this.blocks);
  }

  /**
   * True if the endpoints answer but no new block appears for unusually long; on a chain with irregular blocks, only if
   * transactions of `lanes` wait for one. Unsent or held transactions do not count: a chain that mines on demand makes
   * no block for them.
   */
  isStalled(lanes: readonly OwnedLane[]): boolean {
    const { clock } = this.ports;
    const sentAt = lanes.flatMap(({ mined, unmined }) => [
      ...[...unmined.values()].flatMap(({ held, firstSentAt }) => (held ? [] : (firstSentAt?.getTime() ?? []))),
      // A mined transaction waits for further blocks. Its wait is counted from the arrival of the newest block.
      ...(mined.size > 0 ? [0] : []),
    ]);
    const awaitedMs = sentAt.length === 0 ? null : clock.now().getTime() - Math.min(...sentAt);
    return this.reachable && isStalled(this.blocks, clock.monotonicMs(), awaitedMs);
  }

  /**
   * Raises an alert because processing the chain's new blocks failed by an error in this program. Raised once, until
   * the processing succeeds again.
   */
  passFailed(message: string): void {
    this.failedPasses++;
    this.standing.raise({ severity: "ERROR", code: "PASS_FAILED", message, chainId: this.chain.chainId });
  }

  /**
   * `work` processes the lanes after a new block, and returns true if it processed all of them. If it skipped a lane,
   * an earlier failure may be due to that lane, so the failure's alert stays open.
   */
  async endingFailures(work: () => Promise<boolean>): Promise<void> {
    const { chainId } = this.chain;
    const before = this.failedPasses;
    if ((await work()) && this.failedPasses === before)
      this.standing.resolve({ code: "PASS_FAILED", chainId }, `a pass over chain ${chainId} was whole`);
  }

  /** Clears answers that were cached while another block was the newest. */
  forget(): void {
    this.markets.forget();
    this.balances.clear();
    this.opinions.clear();
  }

  /**
   * Raises an alert if the chain still has no safe or finalized block after a while. A young chain has none yet; some
   * chains never have one.
   */
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

  /** A transaction whose caller set all fees needs no market, so it can be priced while the chain is unreachable. */
  marketFor(wishes: FeeWishes): Promise<FeeMarket> {
    return isFullyPriced(wishes) ? Promise.resolve(NO_MARKET) : this.feeMarket();
  }

  /**
   * Base fees used to confirm a fee market: the market's own base fees if two endpoints returned the same header, else
   * the base fees of the blocks that this node has read.
   */
  seenBaseFees({ agreed, baseFees }: FeeMarket): readonly bigint[] {
    return agreed === true ? baseFees : this.follower.seenBaseFees;
  }

  /**
   * Highest plausible price per gas. A fee market from a single endpoint may be false, its history included, so the
   * price is also limited by the base fees of the blocks that this node follows.
   */
  private usualLimit(market: FeeMarket) {
    const seenBaseFees = this.seenBaseFees(market);
    if (this.sanity?.of !== seenBaseFees) this.sanity = { of: seenBaseFees, limit: sanityLimit(seenBaseFees) };
    return this.sanity.limit;
  }

  /**
   * Base fee used to refuse a transaction: the lower of the newest block's and the one in the last market that two
   * endpoints agreed on.
   */
  get leastBaseFee(): bigint | null {
    const { baseFee } = this.follower;
    const agreed = this.knownMarket?.agreed === true ? this.knownMarket.baseFees.at(-1) : undefined;
    return baseFee === null || agreed === undefined ? baseFee : smaller(baseFee, agreed);
  }

  feeMarket(): Promise<FeeMarket> {
    return this.markets.newest();
  }

  /** Last known fee market, for display and for `leastBaseFee`. */
  get knownMarket(): FeeMarket | null {
    return this.markets.known;
  }

  /** The last fee market, if it is recent enough to check a create by it; null: wait for a new one. */
  recentMarket(): FeeMarket | null {
    return this.markets.recent();
  }

  private async askMarket() {
    const market = await this.chain.feeMarket();
    this.disputes.notePrices(market.disputed ?? null);
    return market;
  }

  balance(address: Address): Promise<bigint> {
    return this.balances.about(address, this.settings.pollIntervalMs, () => this.askBalance(address));
  }

  async askBalance(address: Address): Promise<bigint> {
    const balance = await this.chain.balance(address);
    this.knownBalances.set(address, balance);
    return balance;
  }

  /**
   * The block at a height as two endpoints report it. Requested once for all lanes that have transactions in that
   * block.
   */
  secondOpinion(blockNumber: number): Promise<SecondOpinion> {
    return this.opinions.about(blockNumber, this.settings.pollIntervalMs, () => this.chain.secondOpinion(blockNumber));
  }
}

interface Configured {
  readonly chains: readonly { readonly chain: Chain; readonly settings: ChainSettings }[];
}

/** Contexts of all configured chains. */
export function contextsOf(ports: Pick<Ports, "clock" | "telemetry"> & Configured): ReadonlyMap<number, ChainContext> {
  const contexts = ports.chains.map(({ chain, settings }) => new ChainContext(chain, settings, ports));
  return new Map(contexts.map((context) => [context.chain.chainId, context]));
}

/** The context of the chain that a caller named. */
export function askedFor(chains: ReadonlyMap<number, ChainContext>, chainId: number): ChainContext {
  const context = chains.get(chainId);
  if (context === undefined)
    throw new FencepostError("UNKNOWN_CHAIN", `chain ${chainId} is not configured on this node`);
  return context;
}

/**
 * Canonical block hashes by height, from this node's window of recent blocks. Heights below the window are requested
 * from the chain in one batch. Other heights are left out.
 */
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

/** Maximum number of addresses kept, enough for a busy node; the oldest are removed. */
const MOST_KEPT = 10_000;

/**
 * Addresses that have, or had, code. An entry can only permit a call, never forbid one. Code may disappear by a reorg,
 * or because a contract destroys itself, but an address that was a contract is not a typing error.
 */
export class KnownCode {
  private readonly addresses = new Map<Address, "seen" | "deployed">();

  /** True if an endpoint has returned the code of this address: it need not be requested again. */
  isSeen(address: Address): boolean {
    return this.addresses.get(address) === "seen";
  }

  /**
   * True if the address's code was seen, or a receipt shows its deployment; lagging endpoints may not have that code
   * yet.
   */
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
 * Maximum gas of one transaction on a chain: the lower of the block's gas limit and the cap per transaction. The cap
 * comes from the settings, else from the known caps by chain id, else from a node's refusal of a payload.
 *
 * Reads: the newest block that this node has read. Writes: nothing durable. A crash loses a cap that was learned from a
 * refusal; the next refusal shows it again.
 */

/** How long a learned gas cap is used: a chain may raise its cap, and one refusal may have been a mistake. */
const LEARNED_FOR_MS = 60 * 60_000;
/**
 * Lowest gas cap that is learned from a refusal. Every cap in use is higher. If a lower cap, named by a false endpoint,
 * were accepted, most creates would be refused.
 */
const LEAST_CAP = 1_000_000n;

interface Options {
  readonly chainId: number;
  /** Configured gas cap per transaction; null if not configured. */
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

  /** Maximum gas of a transaction; null if no block was seen and no cap is known. */
  get most(): GasLimit | null {
    return lowerLimit(this.options.blockGasLimit(), this.cap);
  }

  /** Gas cap for one transaction, independent of the block's size; null if unknown. */
  get cap(): bigint | null {
    const { chainId, configured } = this.options;
    return configured ?? knownGasCap(chainId) ?? this.fresh();
  }

  /** Learns a gas cap: every endpoint that was tried refused `gas` and named a maximum. `cap` is the highest. */
  learn(cap: bigint, gas: bigint): void {
    if (cap < LEAST_CAP || cap >= gas) return;
    this.learned = { cap, untilMs: this.options.clock.monotonicMs() + LEARNED_FOR_MS };
  }

  private fresh() {
    if (this.learned !== null && this.options.clock.monotonicMs() >= this.learned.untilMs) this.learned = null;
    return this.learned?.cap ?? null;
  }
}
