/**
 * Proves the receipts of a single endpoint against the hash of their block. The hash commits to the header, and the
 * header to every transaction and receipt (Yellow Paper, section 4.4). So a false receipt would need another block
 * hash.
 *
 * Some blocks cannot be recomputed from the public encoding: OP deposits, Arbitrum, Bor, zkSync, unknown forks. Their
 * receipts count as unproven, not as contradicted, and are accepted without proof.
 */
import { Worker } from "node:worker_threads";
import type { Hash, Hex } from "../../../domain/lane.ts";
import type { Receipt } from "../../../domain/transaction/transaction.ts";
import { type BlockPlace, ChainUnavailable, type ReceiptVerdict, type Settling } from "../../../ports/chain.ts";
import { decodeTransaction } from "../codec/decode-transaction.ts";
import { fetchBlockReceipts, readReceipt } from "../reads/read-receipts.ts";
import type { Endpoint } from "../rpc/endpoints.ts";
import { saysNoSuchBlock } from "../rpc/read-block.ts";
import { type Fields, read, resultOf, withholds } from "../rpc/rpc-errors.ts";
import { threadOptions, workerThread } from "../threads/worker-thread.ts";
import type { BlockEvidence, BlockVerdict, ProvedTransaction } from "./worker/prove-block.js";

/** Largest number of transactions in a block that is fetched in full. Receipts of larger blocks stay unproven. */
const MOST_TRANSACTIONS = 5_000;
/** Limit on receipts that are fetched one by one if the node has no `eth_getBlockReceipts`. */
const MOST_SINGLE_RECEIPTS = 500;
/**
 * If a block shows that blocks of its chain cannot be recomputed here, this many blocks after it are not tried at that
 * endpoint.
 */
const UNPROVABLE_BLOCKS = 256;
const BLOCKS_REMEMBERED = 64;

/**
 * A transaction of a proved block; null if the block does not contain it. Raw bytes are kept only if the sender must be
 * checked.
 */
type Proved = { readonly receipt: Receipt; readonly raw: Hex | null } | null;

interface Shown extends Pick<BlockEvidence, "block" | "receipts"> {
  /** Error of a receipt request; null if every request was answered. */
  readonly failure: Error | null;
}

export class BlockProver {
  readonly #thread = workerThread<BlockEvidence, BlockVerdict>({
    name: "the proving thread",
    start: () =>
      new Worker(new URL("./worker/prove-worker.js", import.meta.url), { ...threadOptions(), name: "fencepost-prove" }),
    failure: (message, options) => new ProofFailed(message, options),
  });
  /**
   * Proved transactions by block hash. A block's content never changes, so a cached transaction is not proved again.
   */
  readonly #proved = new Map<Hash, Map<Hash, Proved>>();

  async settle(endpoint: Endpoint, block: BlockPlace, transactions: readonly Settling[]) {
    const all = (verdict: ReceiptVerdict) => transactions.map(() => verdict);
    if (!transactions.every((each) => this.#isKnown(block, each))) {
      if (block.number <= endpoint.unprovableThrough) return all({ kind: "unproven" });
      const shown = await fetchShown(endpoint, block.hash);
      if (shown === "unproven") return all({ kind: shown });
      if (shown === "behind") return all({ kind: shown, detail: `${endpoint.rpc.label} does not have that block` });
      const { failure, ...evidence } = shown;
      const wanted = transactions.map(({ txHash }) => txHash);
      const verdict = await this.#thread.ask({ ...block, ...evidence, wanted });
      if (verdict.kind === "contradicts") {
        if (failure !== null) throw failure;
        return all({ kind: "disagree", answers: [`${endpoint.rpc.label}: ${verdict.detail}`] });
      }
      if (verdict.kind === "unprovable") {
        if (verdict.of === "chain") endpoint.unprovableThrough = block.number + UNPROVABLE_BLOCKS;
        return all({ kind: "unproven" });
      }
      this.#remember(block, transactions, verdict.transactions);
    }
    return Promise.all(transactions.map((each) => verdictOn(this.#proved.get(block.hash)?.get(each.txHash), each)));
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  #isKnown({ hash }: BlockPlace, { txHash, sentBy }: Settling): boolean {
    const known = this.#proved.get(hash)?.get(txHash);
    return known === null || (known !== undefined && (sentBy === undefined || known.raw !== null));
  }

  #remember(block: BlockPlace, asked: readonly Settling[], proved: readonly ProvedTransaction[]): void {
    const known = this.#proved.get(block.hash) ?? new Map<Hash, Proved>();
    const found = new Map(proved.map((each) => [each.txHash, each]));
    for (const { txHash, sentBy } of asked) {
      const each = found.get(txHash);
      const raw = sentBy === undefined ? null : ((each?.raw ?? null) as Hex | null);
      known.set(txHash, each === undefined ? null : { receipt: provedReceipt(block, each), raw });
    }
    this.#proved.delete(block.hash);
    this.#proved.set(block.hash, known);
    for (const hash of [...this.#proved.keys()].slice(0, -BLOCKS_REMEMBERED)) this.#proved.delete(hash);
  }
}

/**
 * The proving thread failed. The endpoint did not cause this, so it is not counted as the endpoint's failure. Proofs of
 * other blocks continue.
 */
export class ProofFailed extends ChainUnavailable {
  override readonly name = "ProofFailed";
}

async function verdictOn(proved: Proved | undefined, { sentBy }: Settling): Promise<ReceiptVerdict> {
  if (!proved) return { kind: "absent", detail: "its block, which is proved, does not contain it" };
  const { receipt, raw } = proved;
  if (sentBy === undefined || raw === null) return { kind: "agreed", receipt };
  // A transaction without a chain id (before EIP-155) cannot be decoded here, so its sender stays unproven.
  const sent = await decodeTransaction(raw).catch(() => null);
  if (sent === null) return { kind: "unproven" };
  const { signer, unsigned } = sent;
  const { to, value, data } = unsigned;
  if (signer === sentBy.signer && unsigned.nonce === sentBy.nonce)
    return { kind: "agreed", receipt, sent: { to, value, data } };
  return { kind: "absent", detail: `it is nonce ${unsigned.nonce} of ${signer}` };
}

/**
 * Builds a receipt from proved data. The proved block number and hash replace those in the receipt. A block's hash does
 * not commit to the price paid, so the reported price is kept only if it equals the recomputed one.
 */
function provedReceipt(block: BlockPlace, { receipt, pricePaid }: ProvedTransaction): Receipt {
  const read = readReceipt(receipt);
  const effectiveGasPrice = read.effectiveGasPrice === pricePaid ? pricePaid : null;
  const unsure = read.besideGas === undefined ? {} : { besideGasUnsure: true as const };
  return { ...read, blockNumber: block.number, blockHash: block.hash, effectiveGasPrice, ...unsure };
}

/**
 * Fetches a block and its receipts. Receipts that the node does not return are left out: system transactions may have
 * none.
 */
async function fetchShown(endpoint: Endpoint, hash: Hash): Promise<Shown | "behind" | "unproven"> {
  const [block, list] = await Promise.all([fetchWhole(endpoint, hash), fetchBlockReceipts(endpoint, hash)]);
  if (typeof block === "string") return block;
  if (list === "gone") return { block, receipts: [], failure: null };
  if (typeof list !== "string") return { block, receipts: list.filter((each) => each !== null), failure: null };
  const hashes = read
    .array(block.transactions, "block.transactions")
    .map((each) => read.hash(read.record(each, "block.transactions[]").hash, "transaction.hash"));
  if (hashes.length > MOST_SINGLE_RECEIPTS) return "unproven";
  const calls = hashes.map((each) => ({ method: "eth_getTransactionReceipt", params: [each] }));
  const replies = await endpoint.rpc.batch(calls);
  const receipts = replies.flatMap((reply) => (reply.ok && reply.result !== null ? [reply.result] : []));
  return { block, receipts, failure: replies.find((reply) => !reply.ok)?.error ?? null };
}

async function fetchWhole(endpoint: Endpoint, hash: Hash): Promise<Fields | "behind" | "unproven"> {
  const [reply] = await endpoint.rpc.batch([{ method: "eth_getBlockByHash", params: [hash, true] }]);
  // Give up proving if the node refuses to return the full block: waiting for it would block the decision without end.
  if (reply?.ok === false && !saysNoSuchBlock(reply.error) && withholds(reply.error)) return "unproven";
  const block = read.optional(read.record)(resultOf(reply, saysNoSuchBlock), "the block");
  if (block === null) return "behind";
  return read.array(block.transactions, "block.transactions").length > MOST_TRANSACTIONS ? "unproven" : block;
}
