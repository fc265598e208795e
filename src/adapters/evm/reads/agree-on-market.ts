/**
 * Fee market of a chain whose endpoints may report false prices. A header that hashes to its block's hash has a true
 * base fee, so with two endpoints up the base fee is that of the newest header that both have. Tips and gas prices are
 * in no header: the lower of the two markets counts (domain/two-markets.ts).
 *
 * Some chains have headers that cannot be recomputed here (zkSync, Arbitrum, Bor, unknown forks): two endpoints agree
 * on a header that does not hash. On these chains agreement is enough, and no price waits for a proof.
 */

import { lowerOf, type MarketWord, type SharedBaseFee } from "../../../domain/fees/two-markets.ts";
import type { FeeMarket } from "../../../domain/transaction/fees.ts";
import type { Block } from "../../../ports/chain.ts";
import { type Clock, within } from "../../../ports/clock.ts";
import type { Ask, Endpoint, Endpoints } from "../rpc/endpoints.ts";
import { fetchBlocks, readBlock } from "../rpc/read-block.ts";
import { BadAnswer, RpcErrorAnswer, type RpcReply, read, resultOf } from "../rpc/rpc-errors.ts";
import type { RpcTransport } from "../rpc/transport.ts";

/** A price waits this long for a stalled second endpoint. Later the endpoint counts as down. */
const SECOND_WORD_MS = 1_000;
/** If the second endpoint does not answer, a market that both agreed on within this time is still used. */
const KEPT_MS = 60_000;
/**
 * A lone endpoint's headers hashed once and do not any more: after this many blocks the chain counts as forked to
 * another encoding.
 */
const REFUSED_BLOCKS = 256;

interface Word extends ShownMarket {
  readonly endpoint: Endpoint;
}

export class PriceJudge {
  readonly #endpoints: Endpoints;
  readonly #clock: Clock;
  /** Newest header that hashed to its block's hash; null: no header of this chain did yet. */
  #proved: Block | null = null;
  #agreed: { readonly market: FeeMarket; readonly ms: number } | null = null;

  constructor(endpoints: Endpoints, clock: Clock) {
    this.#endpoints = endpoints;
    this.#clock = clock;
  }

  async market(): Promise<FeeMarket> {
    const [one, other] = this.#endpoints.usable().filter(({ down }) => !down);
    if (one === undefined || other === undefined) return this.#askAlone();
    const [a, b] = await this.#askTwo(one, other);
    if (a === undefined) return this.#askAlone();
    if (b !== undefined) return this.#together(a, b);
    const isFresh = this.#agreed !== null && this.#clock.monotonicMs() - this.#agreed.ms < KEPT_MS;
    const isSilent = !one.down && !other.down;
    return this.#agreed !== null && isFresh && isSilent ? this.#agreed.market : this.#alone(a);
  }

  async #askAlone(): Promise<FeeMarket> {
    return this.#alone(await this.#endpoints.read(fetchWord));
  }

  /** Answers of the two endpoints that arrive in time. */
  async #askTwo(one: Endpoint, other: Endpoint): Promise<readonly Word[]> {
    const asked = [one, other].map((endpoint) => this.#endpoints.tryOne(endpoint, fetchWord, []));
    const early = await Promise.race(asked);
    const said = await within(this.#clock, Promise.all(asked), { ms: SECOND_WORD_MS, late: () => [early] });
    return said.flatMap((each) => each?.answer ?? []);
  }

  async #together(a: Word, b: Word): Promise<FeeMarket> {
    const versions = await this.#sharedHeader(a, b);
    const proved = versions.find(({ head }) => head.headerHolds === true);
    if (proved !== undefined) this.#proved = proved.head;
    const market = lowerOf(marketOf(a), marketOf(b), sharedBaseFee(versions), troublesIn(versions));
    if (market.agreed === true) this.#agreed = { market, ms: this.#clock.monotonicMs() };
    return market;
  }

  /**
   * The newest header that both endpoints have, as each shows it. Empty if their chains differ below the lower head, or
   * if one does not answer.
   */
  async #sharedHeader(a: Word, b: Word): Promise<readonly Version[]> {
    if (a.head.hash === b.head.hash) return [a, b];
    const [lower, higher] = a.head.number <= b.head.number ? [a, b] : [b, a];
    const isParent = higher.head.headerHolds === true && higher.head.parentHash === lower.head.hash;
    if (isParent && lower.head.headerHolds === true) return [lower];
    const said = await this.#endpoints.tryOne(higher.endpoint, (rpc) => fetchBlocks(rpc, [lower.head.number]), []);
    const head = said?.answer[0] ?? null;
    return head === null || head.hash !== lower.head.hash ? [] : [lower, { endpoint: higher.endpoint, head }];
  }

  #alone(word: Word): FeeMarket {
    const { head, market, endpoint } = word;
    if (head.headerHolds === true) this.#proved = head;
    if (this.#proved === null) return market;
    if (head === this.#proved) return pricedBy(market, head);
    if (head.number > this.#proved.number + REFUSED_BLOCKS) return market;
    return { ...pricedBy(market, this.#proved), disputed: [forgery({ endpoint, head })] };
  }
}

type Version = Pick<Word, "endpoint" | "head">;

const fetchWord: Ask<Word> = async (rpc, endpoint) => ({ ...(await fetchFeeMarket(rpc)), endpoint });

function marketOf({ endpoint, market, head }: Word): MarketWord {
  return { label: endpoint.rpc.label, market, baseFee: head.baseFeePerGas };
}

/** Base fee of the version that hashes. If none hashes: the base fee that all versions have. */
function sharedBaseFee(versions: readonly Version[]): SharedBaseFee {
  const proved = versions.find(({ head }) => head.headerHolds === true);
  const [first, ...others] = (proved === undefined ? versions : [proved]).map(({ head }) => head.baseFeePerGas);
  if (first === undefined || others.some((baseFee) => baseFee !== first)) return "none";
  return { baseFee: first };
}

function troublesIn(versions: readonly Version[]): readonly string[] {
  const forged = versions.filter(({ head }) => head.headerHolds !== true);
  if (forged.length < versions.length) return forged.map(forgery);
  if (sharedBaseFee(versions) !== "none") return [];
  return versions.map(({ endpoint, head }) => {
    return `${endpoint.rpc.label} says that block ${head.number} has a base fee of ${head.baseFeePerGas} wei`;
  });
}

function forgery({ endpoint, head }: Version): string {
  return `${endpoint.rpc.label} shows block ${head.number} with a header that does not hash to ${head.hash}`;
}

/** The fee history is the claim of one endpoint, so it counts for tips only. */
function pricedBy(market: FeeMarket, { baseFeePerGas }: Block): FeeMarket {
  if (baseFeePerGas === null) return { ...market, baseFees: [], priorityFees: [] };
  return { ...market, baseFees: [baseFeePerGas] };
}

/** Number of blocks whose median limits a first price. */
const BLOCKS = 100;
/** A low tip that is still paid: the lowest tips in a block are often the builder's own. */
const TIP_PERCENTILE = 25;

/** The fee market that one endpoint reports, with its newest block. */
export interface ShownMarket {
  readonly market: FeeMarket;
  readonly head: Block;
}

/** One round trip for fee history, legacy price and head. Only the head distinguishes a base fee of zero from none. */
export async function fetchFeeMarket(rpc: RpcTransport): Promise<ShownMarket> {
  const [history, price, head] = await rpc.batch([
    { method: "eth_feeHistory", params: [`0x${BLOCKS.toString(16)}`, "latest", [TIP_PERCENTILE]] },
    { method: "eth_gasPrice", params: [] },
    { method: "eth_getBlockByNumber", params: ["latest", false] },
  ]);
  const latest = readBlock(resultOf(head));
  if (latest === null) throw new BadAnswer("it has no latest block");
  if (latest.baseFeePerGas === null) {
    const gasPrice = read.bigint(resultOf(price), "eth_gasPrice");
    return { head: latest, market: { baseFees: [], priorityFees: [], gasPrice } };
  }
  const { baseFees, priorityFees } = readHistory(history) ?? { baseFees: [latest.baseFeePerGas], priorityFees: [] };
  return { head: latest, market: { baseFees, priorityFees, gasPrice: readPrice(price, baseFees) } };
}

function readHistory(reply: RpcReply | undefined): Pick<FeeMarket, "baseFees" | "priorityFees"> | null {
  if (saysNothing(reply)) return null;
  const history = read.record(resultOf(reply), "eth_feeHistory");
  // One base fee for each block asked for, and one for the next block.
  const baseFees = read
    .array(history.baseFeePerGas, "feeHistory.baseFeePerGas")
    .slice(-BLOCKS - 1)
    .map((fee) => read.bigint(fee, "feeHistory.baseFeePerGas[]"));
  if (baseFees.length === 0) return null;
  const ratios = read.array(history.gasUsedRatio, "feeHistory.gasUsedRatio").slice(-BLOCKS);
  const rewards: readonly unknown[] = Array.isArray(history.reward) ? history.reward.slice(-BLOCKS) : [];
  const priorityFees = rewards
    .filter((_, index) => Number(ratios[index]) > 0)
    .flatMap((reward) => read.array(reward, "feeHistory.reward[]").slice(0, 1))
    .map((tip) => read.bigint(tip, "feeHistory.reward[][]"));
  return { baseFees, priorityFees };
}

/** Chains with dynamic fees may not serve `eth_gasPrice`. Then the price is the base fee plus 10 %. */
function readPrice(reply: RpcReply | undefined, baseFees: readonly bigint[]): bigint {
  if (!saysNothing(reply)) return read.bigint(resultOf(reply), "eth_gasPrice");
  return ((baseFees.at(-1) ?? 0n) * 11n) / 10n;
}

function saysNothing(reply: RpcReply | undefined): boolean {
  return reply?.ok === false && reply.error instanceof RpcErrorAnswer;
}
