/**
 * Finds the mined transaction at a signer's nonce, once the chain's transaction count has passed that nonce. There are
 * three ways, tried in order: the node's own look-up by sender and nonce; a binary search for the block in which the
 * count passed the nonce; and, if the node has pruned the state for that, a scan of a limited number of blocks,
 * downwards from where the search ended.
 *
 * Reads: the chain. Writes: nothing. A transaction that no endpoint shows is `unseen`, and decides nothing (I7).
 */
import type { Address } from "../../domain/lane.ts";
import type { Receipt } from "../../domain/transaction/transaction.ts";
import type { ChainTransaction } from "../../ports/chain.ts";
import { type ChainContext, canonicalHashes } from "./chain-context.ts";

export type Sent =
  /** The transaction is mined on the canonical chain, with this receipt. */
  | { readonly kind: "mined"; readonly transaction: ChainTransaction; readonly receipt: Receipt }
  /** No block of the chain, as this node knows it, contains a transaction with this nonce yet. */
  | { readonly kind: "open" }
  /** The nonce is used, but no endpoint returns the transaction that used it. */
  | { readonly kind: "unseen"; readonly detail: string };

export interface SentQuery {
  readonly signer: Address;
  readonly nonce: number;
  /**
   * Transactions found by earlier look-ups in the same pass, by nonce. One block often contains several of a signer's
   * nonces.
   */
  readonly seen: Map<number, ChainTransaction>;
}

/** Finds the transaction at a nonce. Throws `ChainUnavailable`. */
export async function findSent(context: ChainContext, query: SentQuery): Promise<Sent> {
  const found = query.seen.get(query.nonce) ?? (await lookUp(context, query));
  if (found === "open") return { kind: "open" };
  if (found === "unseen") return { kind: "unseen", detail: "no block within reach shows a transaction at this nonce" };
  const [receipt] = await context.chain.receipts([found.txHash]);
  if (receipt === undefined || receipt === null) return { kind: "unseen", detail: `${found.txHash} has no receipt` };
  const hashAt = await canonicalHashes(context, [receipt.blockNumber]);
  const isCanonical = hashAt.get(receipt.blockNumber) === receipt.blockHash;
  if (!isCanonical) return { kind: "unseen", detail: `${found.txHash} is not on the chain we follow` };
  return { kind: "mined", transaction: found, receipt };
}

type LookUp = ChainTransaction | "open" | "unseen";

async function lookUp(context: ChainContext, query: SentQuery): Promise<LookUp> {
  const direct = await context.chain.transactionBySenderAndNonce(query.signer, query.nonce);
  if (direct !== "unsupported" && direct !== null && direct.block !== null) return direct;
  const tip = context.follower.window.tip;
  if (tip === null) return "open";
  const passed = await context.counts.at(query.signer, tip.number);
  // If the count at the newest block is missing, the endpoint lags or is faulty, because a node prunes the newest state
  // last.
  if (passed === null || passed <= query.nonce) return "open";
  const place = await passedIn(context, query, tip.number);
  if ("prunedBelow" in place) return scan(context, query, place.prunedBelow);
  return (await readBlock(context, query, place.block)) ?? "unseen";
}

/**
 * Finds the first block whose transaction count is above the nonce. If the node has pruned the state that decides this,
 * returns the lowest block found so far whose count is above the nonce.
 */
async function passedIn(
  context: ChainContext,
  query: SentQuery,
  tip: number,
): Promise<{ readonly block: number } | { readonly prunedBelow: number }> {
  let high = tip;
  let low = -1;
  // Most transactions are recent: search down from the tip in doubling steps, then by halves.
  for (let step = 1; tip - step >= 0; step *= 2) {
    const count = await context.counts.at(query.signer, tip - step);
    if (count === null) return { prunedBelow: high };
    if (count <= query.nonce) {
      low = tip - step;
      break;
    }
    high = tip - step;
  }
  while (high - low > 1) {
    const middle = Math.floor((high + low) / 2);
    const count = await context.counts.at(query.signer, middle);
    if (count === null) return { prunedBelow: high };
    if (count <= query.nonce) low = middle;
    else high = middle;
  }
  return { block: high };
}

async function scan(context: ChainContext, query: SentQuery, from: number): Promise<LookUp> {
  const lowest = Math.max(0, from - context.settings.grayZoneLookback + 1);
  for (let number = from; number >= lowest; number--) {
    const found = await readBlock(context, query, number);
    if (found !== null) return found;
  }
  return "unseen";
}

async function readBlock(context: ChainContext, query: SentQuery, number: number) {
  const sent = (await context.chain.sentInBlock(query.signer, number)) ?? [];
  for (const transaction of sent) query.seen.set(transaction.nonce, transaction);
  return sent.find(({ nonce }) => nonce === query.nonce) ?? null;
}
