/**
 * Determines the fee market of a chain whose endpoints may report false prices. A header that hashes to its block's
 * hash has a true base fee. So if two endpoints are up, the base fee is taken from the newest header that both have.
 * Tips and gas prices are in no header: the lower of the two markets counts (domain/fees/two-markets.ts).
 *
 * On some chains the header's hash cannot be recomputed here (zkSync, Arbitrum, Bor, unknown forks). There it is enough
 * that two endpoints return the same header, and no price waits for a proof.
 */

import { lowerOf, type MarketWord, type SharedBaseFee } from "../../../domain/fees/two-markets.ts";
import type { FeeMarket } from "../../../domain/transaction/fees.ts";
import type { Block } from "../../../ports/chain.ts";
import { type Clock, within } from "../../../ports/clock.ts";
import type { Ask, Endpoint, Endpoints } from "../rpc/endpoints.ts";
import { fetchBlocks, readBlock } from "../rpc/read-block.ts";
import { BadAnswer, RpcErrorAnswer, type RpcReply, read, resultOf } from "../rpc/rpc-errors.ts";
import type { RpcTransport } from "../rpc/transport.ts";

/**
 * Longest time that a price waits for a stalled second endpoint. After it, the market is determined without that
 * endpoint's response.
 */
const SECOND_WORD_MS = 1_000;
/** How long a market that two endpoints agreed on is used while the second endpoint does not answer. */
const KEPT_MS = 60_000;
/**
 * If only one endpoint is up and its newest header does not hash to its block's hash, although headers of this chain
 * did before, the base fee of the last proved header is used for this many blocks. After that, the chain is assumed to
 * have forked to another header encoding.
 */
const REFUSED_BLOCKS = 256;

interface Word extends ShownMarket {
  readonly endpoint: Endpoint;
}

/** Implements `Chain.feeMarket`. */
export function openMarket(endpoints: Endpoints, clock: Clock): () => Promise<FeeMarket> {
  /** Newest header that hashed to its block's hash; null if no header of this chain has done so yet. */
  let proved: Block | null = null;
  let agreed: { readonly market: FeeMarket; readonly ms: number } | null = null;

  /** Asks two endpoints for the market and returns the responses that arrive in time. */
  async function askTwo(two: readonly Endpoint[]): Promise<readonly Word[]> {
    const asked = two.map((endpoint) => endpoints.tryOne(endpoint, fetchWord, []));
    const early = await Promise.race(asked);
    const said = await within(clock, Promise.all(asked), { ms: SECOND_WORD_MS, late: () => [early] });
    return said.flatMap((each) => each?.answer ?? []);
  }

  async function together(a: Word, b: Word) {
    const versions = await sharedHeader(endpoints, a, b);
    proved = versions.find(({ head }) => head.headerHolds === true)?.head ?? proved;
    const market = lowerOf(marketOf(a), marketOf(b), sharedBaseFee(versions), troublesIn(versions));
    if (market.agreed === true) agreed = { market, ms: clock.monotonicMs() };
    return market;
  }

  function alone({ head, market, endpoint }: Word) {
    if (head.headerHolds === true) proved = head;
    if (proved === null) return market;
    if (head === proved) return pricedBy(market, head);
    if (head.number > proved.number + REFUSED_BLOCKS) return market;
    return { ...pricedBy(market, proved), disputed: [forgery({ endpoint, head })] };
  }

  return async () => {
    const two = endpoints
      .usable()
      .filter(({ down }) => !down)
      .slice(0, 2);
    const [a, b] = two.length === 2 ? await askTwo(two) : [];
    if (a === undefined) return alone(await endpoints.read(fetchWord));
    if (b !== undefined) return together(a, b);
    const isFresh = agreed !== null && clock.monotonicMs() - agreed.ms < KEPT_MS;
    const isSilent = two.every(({ down }) => !down);
    return agreed !== null && isFresh && isSilent ? agreed.market : alone(a);
  };
}

/**
 * The newest header that both endpoints have, as each of them returned it. Empty if the endpoints have different blocks
 * at the height of the lower one's newest block, or if one does not answer.
 */
async function sharedHeader(endpoints: Endpoints, a: Word, b: Word): Promise<readonly Version[]> {
  if (a.head.hash === b.head.hash) return [a, b];
  const [lower, higher] = a.head.number <= b.head.number ? [a, b] : [b, a];
  const isParent = higher.head.headerHolds === true && higher.head.parentHash === lower.head.hash;
  if (isParent && lower.head.headerHolds === true) return [lower];
  const said = await endpoints.tryOne(higher.endpoint, (rpc) => fetchBlocks(rpc, [lower.head.number]), []);
  const head = said?.answer[0] ?? null;
  return head === null || head.hash !== lower.head.hash ? [] : [lower, { endpoint: higher.endpoint, head }];
}

type Version = Pick<Word, "endpoint" | "head">;

const fetchWord: Ask<Word> = async (rpc, endpoint) => ({ ...(await fetchFeeMarket(rpc)), endpoint });

function marketOf({ endpoint, market, head }: Word): MarketWord {
  return { label: endpoint.rpc.label, market, baseFee: head.baseFeePerGas };
}

/**
 * Endpoints may return different versions of a header. Returns the base fee of the version that hashes to the block's
 * hash. If none does, returns the base fee on which all versions agree.
 */
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

function forgery({ endpoint, head }: Version) {
  return `${endpoint.rpc.label} shows block ${head.number} with a header that does not hash to ${head.hash}`;
}

/**
 * Takes the base fee from a proved block. The fee history is reported by one endpoint without proof, so it is used for
 * tips only.
 */
function pricedBy(market: FeeMarket, { baseFeePerGas }: Block): FeeMarket {
  if (baseFeePerGas === null) return { ...market, baseFees: [], priorityFees: [] };
  return { ...market, baseFees: [baseFeePerGas] };
}

/** Number of recent blocks whose median base fee limits the first price of a transaction. */
const BLOCKS = 100;
/**
 * Percentile of a block's tips that is taken as a low but accepted tip. The lowest tips are often the block builder's
 * own transactions.
 */
const TIP_PERCENTILE = 25;

/** The fee market that one endpoint reports, with its newest block. */
export interface ShownMarket {
  readonly market: FeeMarket;
  readonly head: Block;
}

/**
 * Reads the fee history, the legacy price and the newest block in one round trip. Only the block shows whether the
 * chain has no base fee or a base fee of zero.
 */
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
  // The response contains one base fee for each requested block, and one for the next block.
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

/**
 * Reads the legacy gas price. Chains with dynamic fees may not serve `eth_gasPrice`; then the price is the base fee
 * plus 10 %.
 */
function readPrice(reply: RpcReply | undefined, baseFees: readonly bigint[]) {
  if (!saysNothing(reply)) return read.bigint(resultOf(reply), "eth_gasPrice");
  return ((baseFees.at(-1) ?? 0n) * 11n) / 10n;
}

function saysNothing(reply: RpcReply | undefined) {
  return reply?.ok === false && reply.error instanceof RpcErrorAnswer;
}
