import type { PricedOrder, ResubmitOrder } from "../contract/schemas/actions.ts";
import type { CreatedTransaction } from "../contract/schemas/create.ts";
import type { Explanation, Transaction } from "../contract/schemas/transaction-schema.ts";
import type { FunctionOf, SomeAbi, TypedReplaceOrder } from "../contract/schemas/typed-payload.ts";
import type { CallOptions, OrderOptions } from "./deadline.ts";
import { endedWithout } from "./error-classes.ts";
import type { FencepostFace, ReadOptions } from "./face.ts";
import { isSettled, lookUntil, type WaitOptions } from "./follow.ts";
import type { Hash } from "./hex.ts";

type Calls = Pick<FencepostFace, "get" | "explain" | "resubmit" | "reprice" | "cancel" | "replace">;

/**
 * Members of the create's response. `nonce`, `state` and `txId` have the values last read. If an earlier request had
 * the same request id, `txId` becomes the id of that request's transaction.
 */
export interface SentTransaction extends CreatedTransaction {}

/** Handle of a sent transaction. It need not be kept: `handle(txId)` creates another one. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the constructor copies every member of the answer.
export class SentTransaction implements AsyncIterable<Transaction> {
  readonly #calls: Calls;
  readonly #pollIntervalMs: number | undefined;

  constructor(calls: Calls, created: CreatedTransaction, pollIntervalMs?: number) {
    const { txId, chainId, signer, nonce, state, requestId } = created;
    Object.assign(this, { txId, chainId, signer, nonce, state, requestId });
    this.#calls = calls;
    this.#pollIntervalMs = pollIntervalMs;
  }

  /** Id of the transaction; the same as `txId`. */
  get id(): string {
    return this.txId;
  }

  /**
   * The hash of the newest attempt, as soon as one is signed. A repriced attempt may be mined under another hash: see
   * `mined()`.
   */
  async hash(options?: WaitOptions): Promise<Hash> {
    const { txHash, state, subState } = await this.#until((seen) => seen.txHash !== null || isSettled(seen), options);
    if (txHash !== null) return txHash;
    throw endedWithout(`${this.txId} ended as ${state}/${subState} unsigned`);
  }

  /**
   * Resolves when the transaction has a receipt that reports success, or has ended. The receipt may come from one
   * endpoint only (`receipt.verified`), and a reorg may remove it until `final()`. A revert resolves only once it is
   * verified.
   */
  mined(options?: WaitOptions): Promise<Transaction> {
    return this.#until((seen) => seen.receipt?.status === "success" || isSettled(seen), options);
  }

  /** Resolves when the transaction is CONFIRMED or FAILED_FINAL: a failure is an outcome, not an error. */
  final(options?: WaitOptions): Promise<Transaction> {
    return this.#until(isSettled, options);
  }

  /** Reads the transaction. */
  async get(options?: ReadOptions): Promise<Transaction> {
    return this.#seen(await this.#calls.get(this.txId, options));
  }

  /** Explains in plain words why the transaction is not final yet. */
  explain(options?: CallOptions): Promise<Explanation> {
    return this.#calls.explain(this.txId, options);
  }

  /** Uses up the nonce with an empty transfer, unless the original is mined first. */
  async cancel(request: PricedOrder, options?: OrderOptions): Promise<Transaction> {
    return this.#seen(await this.#calls.cancel(this.txId, request, options));
  }

  /** Signs another payload at the transaction's nonce. */
  async replace<const A extends SomeAbi = SomeAbi, F extends FunctionOf<A> = FunctionOf<A>>(
    request: TypedReplaceOrder<A, F>,
    options?: OrderOptions,
  ): Promise<Transaction> {
    return this.#seen(await this.#calls.replace(this.txId, request, options));
  }

  /** Signs the same payload at a higher price. */
  async reprice(request: PricedOrder, options?: OrderOptions): Promise<Transaction> {
    return this.#seen(await this.#calls.reprice(this.txId, request, options));
  }

  /** Sends the stored bytes again, now. */
  async resubmit(request: ResubmitOrder, options?: OrderOptions): Promise<Transaction> {
    return this.#seen(await this.#calls.resubmit(this.txId, request, options));
  }

  /**
   * Yields the current state, then each change until the transaction is final. States shorter than a polling interval
   * are skipped; `history` has them.
   */
  async *states(options?: WaitOptions): AsyncGenerator<Transaction, void, undefined> {
    for (let before = ""; ; ) {
      const seen = await this.#until((each) => fingerprint(each) !== before, options);
      yield seen;
      if (isSettled(seen)) return;
      before = fingerprint(seen);
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<Transaction, void, undefined> {
    return this.states();
  }

  #until(isThere: (seen: Transaction) => boolean, options: WaitOptions = {}): Promise<Transaction> {
    const pollIntervalMs = options.pollIntervalMs ?? this.#pollIntervalMs;
    const get = (_: string, call: CallOptions) => this.get(call);
    return lookUntil(get, this.txId, { ...options, ...(pollIntervalMs && { pollIntervalMs }) }, isThere);
  }

  #seen(transaction: Transaction): Transaction {
    const { txId, nonce, state } = transaction;
    Object.assign(this, { txId, nonce, state });
    return transaction;
  }
}

/** Fingerprint of a transaction's visible state, to detect a change. */
function fingerprint({ state, subState, txHash, receipt }: Transaction): string {
  return [state, subState, txHash, receipt?.blockHash].join();
}
