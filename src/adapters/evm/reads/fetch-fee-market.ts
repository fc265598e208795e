import type { FeeMarket } from "../../../domain/transaction/fees.ts";
import type { Block } from "../../../ports/chain.ts";
import { BadAnswer, read } from "../rpc/quantities.ts";
import { readBlock } from "../rpc/read-block.ts";
import { RpcErrorAnswer, type RpcReply, resultOf } from "../rpc/rpc-errors.ts";
import type { RpcTransport } from "../rpc/transport.ts";

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
