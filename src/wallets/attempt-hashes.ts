import { failureOf, invalidArgument } from "../client/error-classes.ts";
import type { Transaction } from "../contract/schemas/transaction-schema.ts";
import type { FencepostSource, Hex, WaitOptions } from "./source.ts";

type Attempt = Transaction["attempts"][number];

/** An attempt with a known hash. If an RPC node holds the key, the hash is known only after that node has signed. */
export type HashedAttempt = Attempt & { readonly txHash: string };

export function firstAttempt({ attempts }: Transaction): HashedAttempt | null {
  const [first] = attempts.toSorted((a, b) => a.ordinal - b.ordinal);
  return first !== undefined && isHashed(first) ? first : null;
}

function isHashed(attempt: Attempt): attempt is HashedAttempt {
  return attempt.txHash !== null;
}

/** Finds the transaction that has an attempt with this hash, including old attempts; null: unknown to Fencepost. */
export async function findByHash(source: FencepostSource, hash: string): Promise<Transaction | null> {
  const { items } = await source.list({ txHash: hash.toLowerCase() as Hex, limit: 1 });
  return items[0] ?? null;
}

/**
 * A pending transaction as `eth_getTransactionByHash` shows it; null if no attempt of the transaction has this hash.
 */
export function pendingView(transaction: Transaction, hash: string): Readonly<Record<string, unknown>> | null {
  const attempt = attemptOf(transaction, hash);
  if (attempt === undefined || transaction.nonce === null) return null;
  // The payload of a cancel, a placeholder or a replacement is not known to the client, so null is returned instead of
  // a guess.
  if (changesPayload(attempt)) return null;
  const { payload, chainId, signer, nonce } = transaction;
  const price = attempt.gasPrice ?? attempt.maxFeePerGas ?? "0";
  return {
    hash: attempt.txHash,
    // Use lower case, like nodes: viem compares addresses literally when it searches for a replacement.
    from: signer.toLowerCase(),
    to: payload.to?.toLowerCase() ?? null,
    input: payload.data,
    value: hex(payload.value),
    nonce: hex(nonce),
    gas: hex(attempt.gas),
    gasPrice: hex(price),
    ...feesOf(attempt),
    type: { legacy: "0x0", eip2930: "0x1", eip1559: "0x2" }[attempt.type],
    chainId: hex(chainId),
    ...(attempt.type === "legacy" ? {} : { accessList: payload.accessList ?? [] }),
    ...IN_NO_BLOCK,
  };
}

/**
 * Fields that a transaction without a block shows. The signature is left empty, because Fencepost's API does not return
 * it.
 */
const IN_NO_BLOCK = { blockHash: null, blockNumber: null, transactionIndex: null, v: "0x0", r: "0x0", s: "0x0" };

function feesOf({ maxFeePerGas, maxPriorityFeePerGas }: Attempt): Readonly<Record<string, string>> {
  if (maxFeePerGas === undefined || maxPriorityFeePerGas === undefined) return {};
  return { maxFeePerGas: hex(maxFeePerGas), maxPriorityFeePerGas: hex(maxPriorityFeePerGas) };
}

/**
 * The hash of the attempt that was mined instead of the given one: the same payload at another price. Null if nothing
 * was mined, or if another payload was mined: a mined cancel does not mean that the cancelled payload succeeded.
 */
export function minedInstead(transaction: Transaction, hash: string): string | null {
  const { receipt, attempts } = transaction;
  const asked = attemptOf(transaction, hash);
  if (receipt === null || asked === undefined) return null;
  const mined = attemptOf(transaction, receipt.txHash);
  if (mined === undefined || mined === asked) return null;
  const [first, last] = [asked.ordinal, mined.ordinal].sort((a, b) => a - b) as [number, number];
  const between = attempts.filter(({ ordinal }) => ordinal > first && ordinal <= last);
  return between.some(changesPayload) ? null : receipt.txHash;
}

function changesPayload({ kind }: Attempt): boolean {
  return kind !== "initial" && kind !== "reprice";
}

function attemptOf({ attempts }: Transaction, hash: string): Attempt | undefined {
  return attempts.find(({ txHash }) => txHash === hash.toLowerCase());
}

export function hex(quantity: string | number): `0x${string}` {
  return `0x${BigInt(quantity).toString(16)}`;
}

/**
 * Resolves with the transaction when it is CONFIRMED or FAILED_FINAL. The transaction is found by its id or by the hash
 * of any attempt.
 *
 * @example
 * const { state } = await waitForFinal(client, { hash: await wallet.sendTransaction({ to, value: 1n }) });
 */
export async function waitForFinal(
  source: FencepostSource,
  { txId, hash }: TransactionName,
  options: WaitOptions = {},
): Promise<Transaction> {
  if (txId !== undefined) return source.waitFor(txId, options);
  if (hash === undefined) throw invalidArgument("hash", "name the transaction by its hash or by txId");
  const found = await findByHash(source, hash);
  if (found !== null) return source.waitFor(found.txId, options);
  throw failureOf({ code: "NOT_FOUND", status: 404, detail: `Fencepost knows no transaction with the hash ${hash}` });
}

/** Identifies a transaction: give either `txId` or a hash. */
export interface TransactionName {
  /** Id of the transaction. */
  readonly txId?: string;
  /** Hash of any attempt of the transaction. */
  readonly hash?: string;
}
