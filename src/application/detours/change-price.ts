/**
 * What a payload in the place of another offers: the fees that were named, where they are enough, else what the next block takes.
 *
 * Reads: the market, the blocks that were followed. Writes: nothing. A crash here leaves nothing behind.
 */

import { FencepostError, invalid } from "../../domain/errors.ts";
import {
  type Content,
  feeLimit,
  limitInWords,
  overCeiling,
  refuseOverCeiling,
  repricingLimit,
} from "../../domain/fees/ceilings.ts";
import { type OrderedPrice, orderedPrice } from "../../domain/fees/ordered-price.ts";
import { leastReplacement } from "../../domain/fees/replacement.ts";
import { covers, highestOffer } from "../../domain/fees/repricing.ts";
import { isSendable } from "../../domain/transaction/attempts.ts";
import {
  baseFeeNow,
  type Fees,
  type FeeWishes,
  feeCap,
  larger,
  priceFirstAttempt,
} from "../../domain/transaction/fees.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { Tracked } from "../lane/tracked.ts";

export interface Pricing {
  readonly wishes: FeeWishes;
  readonly costs: Content;
  /** Nobody waits for an answer who could name a price: what may be offered is offered, and the loop follows the market. */
  readonly unattended: boolean;
}

export async function changePrice(context: ChainContext, tx: Tracked, pricing: Pricing): Promise<Fees> {
  const { wishes, costs } = pricing;
  const { ceilings } = context;
  refuseOverCeiling(ceilings, costs, wishes);
  const isCapped = wishes.gasPrice !== undefined || wishes.maxFeePerGas !== undefined;
  if (nothingStands(tx) && isCapped) return (await context.price(wishes, costs)).fees;
  const first = tx.attempts.find(isSendable);
  // Only a hash is known, not what it offers: a first price, which a node that holds something dearer calls underpriced.
  if (first === undefined && Object.keys(wishes).length === 0) return (await context.price({}, costs)).fees;
  const standing = nothingStands(tx) ? null : standingOffer(tx);
  const least = standing && leastReplacement(standing);
  const limit = feeLimit(ceilings, costs);
  if (least !== null && feeCap(least) > limit.most) throw overCeiling(ceilings, costs, feeCap(least), limit);
  if (standing !== null && (first === undefined || isCapped)) return wished(context, standing, pricing);
  const fees = await ordered(context, tx, { ...pricing, standing, first: first?.fees as Fees });
  return tippedAsWished(fees, wishes.maxPriorityFeePerGas, least);
}

interface Ordering extends Pricing {
  readonly standing: Fees | null;
  readonly first: Fees;
}

async function ordered(context: ChainContext, { txId }: Tracked, ordering: Ordering) {
  const { standing, first, costs, unattended, wishes } = ordering;
  const { ceilings } = context;
  const market = await context.feeMarket();
  const seenBaseFees = context.seenBaseFees(market);
  const relative = repricingLimit(ceilings, costs, first);
  const limits = { relative: relative.most, absolute: feeLimit(ceilings, costs).most };
  const usual = standing ?? priceFirstAttempt(market, {}, null);
  const like = inEnvelope(typeOf(usual, wishes));
  const price = orderedPrice({ like, standing, market, seenBaseFees }, limits);
  if (price.verdict === "offer") return price.fees;
  if (price.verdict === "unconfirmed" && unattended && price.allowed !== null) return price.allowed;
  const bound = limitInWords(relative);
  if (price.verdict === "tooDear") throw refused(txId, `needs at least ${price.least} wei per gas, above ${bound}`);
  throw unconfirmed(txId, price, { bound, said: baseFeeNow(market), newest: seenBaseFees.at(-1) });
}

function inEnvelope(type: Fees["type"]): Fees {
  return type === "eip1559" ? { type, maxFeePerGas: 0n, maxPriorityFeePerGas: 0n } : { type, gasPrice: 0n };
}

/** A tip that was named is on top of what the blocks take. */
function tippedAsWished(fees: Fees, tip: bigint | undefined, least: Fees | null) {
  if (tip === undefined || fees.type !== "eip1559") return fees;
  const more = larger(tip - fees.maxPriorityFeePerGas, 0n);
  const tipped = { ...fees, maxFeePerGas: fees.maxFeePerGas + more, maxPriorityFeePerGas: tip };
  if (least === null || covers(tipped, least)) return tipped;
  throw tooLittle("maxPriorityFeePerGas", least);
}

interface Heard {
  readonly bound: string;
  readonly said: bigint | undefined;
  readonly newest: bigint | undefined;
}

/** A chain with base fees says it once more with its next block, so that this may be repeated; one without never does. */
function unconfirmed(
  txId: string,
  { needed }: Extract<OrderedPrice, { verdict: "unconfirmed" }>,
  { bound, said, newest }: Heard,
) {
  const what = `${inWords(needed)}, above ${bound}`;
  if (said === undefined) return refused(txId, `would need ${what}, and only one endpoint's answer says so`);
  const blocks =
    newest === undefined ? "no block was followed yet" : `the newest block that was followed had ${newest}`;
  const detail = `an endpoint says that gas costs ${said} wei, and ${blocks}: nothing was changed. Repeat this once the next block is there, or give the fees (${what})`;
  return new FencepostError("UNAVAILABLE", detail, { txId, baseFeePerGas: `${said}`, retryAfterSeconds: 1 });
}

function refused(txId: string, why: string) {
  return new FencepostError("CONFLICT", `transaction ${txId} ${why}: give the fees`, { txId });
}

/**
 * No node ever took any of it, and the last word was a refusal: there is nothing to outbid, or a fee that cannot be paid
 * could only be replaced by a higher one. A pool that holds something all the same says "underpriced", and then it counts.
 */
function nothingStands({ acceptedOrdinal, pace: { answer } }: Tracked) {
  return acceptedOrdinal === null && (answer === "insufficientFunds" || answer === "rejected");
}

/** The dearest that may stand in a pool: up to the highest that was taken, and beyond it where the answer left that open. */
export function standingOffer({ attempts, acceptedOrdinal, pace: { answer } }: Tracked): Fees {
  const own = attempts.filter(isSendable);
  const isOpen = acceptedOrdinal === null || answer === null || answer === "unknown" || answer === "underpriced";
  const standing = isOpen ? own : own.filter(({ ordinal }) => ordinal <= acceptedOrdinal);
  return (highestOffer(standing) ?? attempts[0]?.fees) as Fees;
}

/** An operator or hook that names a price may go beyond what the loop would offer, up to the ceilings, but has to name enough. */
async function wished(context: ChainContext, standing: Fees, { wishes, costs }: Pricing) {
  const least = leastReplacement(standing);
  const { fees: asked } = await context.price({ ...wishes, type: typeOf(standing, wishes) }, costs);
  const fees = wishes.maxPriorityFeePerGas === undefined ? withTip(asked, least) : asked;
  if (covers(fees, least)) return fees;
  const isCap = wishes.maxFeePerGas !== undefined && feeCap(fees) < feeCap(least);
  const field = fees.type !== "eip1559" ? "gasPrice" : isCap ? "maxFeePerGas" : "maxPriorityFeePerGas";
  throw tooLittle(field, least);
}

function tooLittle(field: string, least: Fees) {
  return invalid(field, `is not enough: nodes take a replacement only from ${inWords(least)} on`);
}

/** The envelope that was asked for, else the one that the fields belong to, else the one that stands. */
function typeOf({ type }: Fees, wishes: FeeWishes) {
  if (wishes.type !== undefined) return wishes.type;
  if (wishes.gasPrice !== undefined) return type === "eip1559" ? "legacy" : type;
  return wishes.maxFeePerGas === undefined && wishes.maxPriorityFeePerGas === undefined ? type : "eip1559";
}

function withTip(fees: Fees, least: Fees) {
  if (fees.type !== "eip1559" || least.type !== "eip1559") return fees;
  const { maxFeePerGas, maxPriorityFeePerGas } = fees;
  const tip = maxPriorityFeePerGas > least.maxPriorityFeePerGas ? maxPriorityFeePerGas : least.maxPriorityFeePerGas;
  return { ...fees, maxPriorityFeePerGas: tip < maxFeePerGas ? tip : maxFeePerGas };
}

export function inWords(fees: Fees): string {
  if (fees.type !== "eip1559") return `gasPrice ${fees.gasPrice}`;
  return `maxFeePerGas ${fees.maxFeePerGas} and maxPriorityFeePerGas ${fees.maxPriorityFeePerGas}`;
}
