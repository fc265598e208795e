import { isError, makeError, type Provider, Signature, type TransactionReceipt, TransactionResponse } from "ethers";
import type { Transaction } from "../contract/schemas/transaction-schema.ts";
import type { Sent } from "../wallets/send-through.ts";

interface SentUnder extends Sent {
  readonly hash: string;
  readonly requestId: string;
}

/**
 * Result of the signer's `sendTransaction`. Its `signature` is empty: Fencepost does not return it; read it from the
 * chain.
 */
export class SentResponse extends TransactionResponse {
  /** Fencepost's id of the transaction, the same for all its hashes. */
  readonly txId: string;
  readonly requestId: string;
  readonly #watched: TransactionResponse;

  constructor({ transaction, attempt, hash, requestId }: SentUnder, provider: Provider, head: number) {
    const members = membersOf(transaction, attempt, hash);
    super(members, provider);
    this.txId = transaction.txId;
    this.requestId = requestId;
    this.#watched = new TransactionResponse(members, provider).replaceableTransaction(head);
  }

  /**
   * Waits like ethers, with one exception: if the same transaction was mined at another price, it resolves with that
   * receipt, whereas ethers throws TRANSACTION_REPLACED. If another transaction was mined at the nonce, it throws
   * TRANSACTION_REPLACED, as ethers does.
   */
  override async wait(confirms?: number, timeout?: number): Promise<TransactionReceipt | null> {
    try {
      return await this.#watched.wait(confirms, timeout);
    } catch (error) {
      if (!isError(error, "TRANSACTION_REPLACED") || error.reason !== "repriced") throw error;
      const { receipt } = error;
      if (receipt.status === 0) throw reverted(receipt);
      return receipt;
    }
  }
}

function reverted(receipt: TransactionReceipt) {
  return makeError("transaction execution reverted", "CALL_EXCEPTION", {
    action: "sendTransaction",
    data: null,
    reason: null,
    invocation: null,
    revert: null,
    transaction: { to: receipt.to, from: receipt.from, data: "" },
    receipt,
  });
}

const TYPES = { legacy: 0, eip2930: 1, eip1559: 2 } as const;

function membersOf({ payload, chainId, signer, nonce }: Transaction, attempt: Sent["attempt"], hash: string) {
  const { gas, type, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = attempt;
  return {
    hash,
    type: TYPES[type],
    to: payload.to,
    from: signer,
    nonce: nonce ?? 0,
    gasLimit: BigInt(gas),
    gasPrice: BigInt(gasPrice ?? maxFeePerGas ?? 0),
    maxFeePerGas: bigintOrNull(maxFeePerGas),
    maxPriorityFeePerGas: bigintOrNull(maxPriorityFeePerGas),
    data: payload.data,
    value: BigInt(payload.value),
    chainId: BigInt(chainId),
    signature: Signature.from(),
    accessList: payload.accessList ?? null,
    ...IN_NO_BLOCK,
  };
}

const IN_NO_BLOCK = { blockNumber: null, blockHash: null, index: 0, authorizationList: null } as const;

function bigintOrNull(wei: string | undefined): bigint | null {
  return wei === undefined ? null : BigInt(wei);
}
