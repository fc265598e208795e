import { encodeTransaction, serialiseSigned } from "../../../src/adapters/evm/signers/worker/serialise.js";
import type { Address, Hex } from "../../../src/domain/lane.ts";
import type { UnsignedTransaction } from "../../../src/domain/transaction/transaction.ts";
import { type Refusal, refusals } from "./refusals.ts";
import { MalformedRlp } from "./rlp.ts";
import type { RecoverSender } from "./sender.ts";
import {
  type DecodedTransaction,
  decodeTransaction,
  MalformedTransaction,
  type SimulatedTransaction,
} from "./transaction.ts";

/** Largest transaction in bytes (geth: txMaxSize). */
const MAX_TRANSACTION_BYTES = 131_072;

interface Identity {
  readonly chainId: number;
  readonly recoverSender: RecoverSender;
}

/** The checks of a transaction that a node makes from its bytes alone. */
export function admit(raw: Hex, node: Identity): SimulatedTransaction | Refusal {
  const size = (raw.length - 2) / 2;
  if (size > MAX_TRANSACTION_BYTES) return refusals.oversized(size, MAX_TRANSACTION_BYTES);
  const decoded = decode(raw);
  if (isRefusal(decoded)) return decoded;
  if (decoded.chainId === null) return refusals.notReplayProtected();
  const from = decoded.chainId === node.chainId ? node.recoverSender(decoded) : null;
  return from === null ? refusals.invalidSender() : signedBy(from, decoded);
}

/**
 * A transaction that a node signs with its own key. The signature holds the sender in plain text, and is not verified.
 */
export function signedByNode(from: Address, unsigned: UnsignedTransaction): SimulatedTransaction {
  const raw = serialiseSigned(encodeTransaction(unsigned), { r: from.slice(2).padStart(64, "0"), s: "02", yParity: 0 });
  return signedBy(from, decodeTransaction(`0x${raw}`));
}

/**
 * Copies field by field, so that the mempool does not keep the signatures or closures of a hundred thousand
 * transactions.
 */
function signedBy(from: Address, decoded: DecodedTransaction): SimulatedTransaction {
  return {
    hash: decoded.hash,
    raw: decoded.raw,
    from,
    type: decoded.type,
    nonce: decoded.nonce,
    to: decoded.to,
    value: decoded.value,
    data: decoded.data,
    gas: decoded.gas,
    maxFeePerGas: decoded.maxFeePerGas,
    maxPriorityFeePerGas: decoded.maxPriorityFeePerGas,
    intrinsicGas: decoded.intrinsicGas,
    ...(decoded.blobs && { blobs: decoded.blobs }),
  };
}

export function isRefusal(value: DecodedTransaction | SimulatedTransaction | Refusal): value is Refusal {
  return "answer" in value;
}

function decode(raw: Hex): DecodedTransaction | Refusal {
  try {
    return decodeTransaction(raw);
  } catch (error) {
    if (error instanceof MalformedTransaction || error instanceof MalformedRlp)
      return refusals.malformed(error.message);
    throw error;
  }
}

interface PriceRules {
  readonly gasLimit: bigint;
  readonly transactionGasCap: bigint | null;
  readonly baseFee: bigint | null;
  readonly minimumTip: bigint;
  readonly refuseUnderBaseFee: boolean;
}

/** The checks of geth's ValidateTransaction that need the newest block but no account. */
export function refuseByPrice(transaction: SimulatedTransaction, rules: PriceRules): Refusal | null {
  const { gas, maxFeePerGas, maxPriorityFeePerGas, intrinsicGas, from } = transaction;
  if (rules.transactionGasCap !== null && gas > rules.transactionGasCap) {
    return refusals.gasLimitTooHigh(rules.transactionGasCap, gas);
  }
  if (gas > rules.gasLimit) return refusals.exceedsBlockGasLimit();
  if (maxPriorityFeePerGas > maxFeePerGas) return refusals.tipAboveFeeCap();
  if (gas < intrinsicGas) return refusals.intrinsicGasTooLow(gas, intrinsicGas);
  if (maxPriorityFeePerGas < rules.minimumTip) return refusals.underpriced(rules.minimumTip, maxPriorityFeePerGas);
  if (rules.refuseUnderBaseFee && rules.baseFee !== null && maxFeePerGas < rules.baseFee) {
    return refusals.feeCapUnderBaseFee(from, maxFeePerGas, rules.baseFee);
  }
  return null;
}
