import type { SubmitAnswer } from "../../../src/domain/chain/answers.ts";
import type { Address } from "../../../src/domain/lane.ts";

/** A node's refusal of a transaction, in geth's wording, and the answer that Fencepost must derive from it. */
export interface Refusal {
  readonly answer: Exclude<SubmitAnswer, "accepted">;
  readonly message: string;
  /** The gas cap named in the message. */
  readonly gasCap?: bigint;
}

function refusal(answer: Refusal["answer"], message: string): Refusal {
  return { answer, message };
}

/** The wordings of geth's core/error.go, core/txpool/errors.go and validation.go, with the values that geth appends. */
export const refusals = {
  alreadyKnown: () => refusal("alreadyKnown", "already known"),
  nonceTooLow: (next: number, nonce: number) =>
    refusal("nonceConsumed", `nonce too low: next nonce ${next}, tx nonce ${nonce}`),
  nonceTooHigh: (address: Address, nonce: number, state: number) =>
    refusal("nonceTooHigh", `nonce too high: address ${address}, tx: ${nonce} state: ${state}`),
  replacementUnderpriced: () => refusal("underpriced", "replacement transaction underpriced"),
  underpriced: (needed: bigint, permitted: bigint) =>
    refusal("underpriced", `transaction underpriced: tip needed ${needed}, tip permitted ${permitted}`),
  feeCapUnderBaseFee: (address: Address, feeCap: bigint, baseFee: bigint) =>
    refusal(
      "underpriced",
      `max fee per gas less than block base fee: address ${address}, maxFeePerGas: ${feeCap}, baseFee: ${baseFee}`,
    ),
  insufficientFunds: (balance: bigint, cost: bigint) =>
    refusal(
      "insufficientFunds",
      `insufficient funds for gas * price + value: balance ${balance}, tx cost ${cost}, overshot ${cost - balance}`,
    ),
  insufficientFundsBehindQueue: (balance: bigint, queued: bigint, cost: bigint) =>
    refusal(
      "insufficientFunds",
      `insufficient funds for gas * price + value: balance ${balance}, queued cost ${queued}, tx cost ${cost}, overshot ${queued + cost - balance}`,
    ),
  intrinsicGasTooLow: (gas: bigint, needed: bigint) =>
    refusal("rejected", `intrinsic gas too low: gas ${gas}, minimum needed ${needed}`),
  gasLimitTooHigh: (cap: bigint, gas: bigint): Refusal => ({
    ...refusal("rejected", `transaction gas limit too high (cap: ${cap}, tx: ${gas})`),
    gasCap: cap,
  }),
  exceedsBlockGasLimit: () => refusal("rejected", "exceeds block gas limit"),
  oversized: (size: number, limit: number) =>
    refusal("rejected", `oversized data: transaction size ${size}, limit ${limit}`),
  tipAboveFeeCap: () => refusal("rejected", "max priority fee per gas higher than max fee per gas"),
  invalidSender: () => refusal("rejected", "invalid sender"),
  notReplayProtected: () => refusal("rejected", "only replay-protected (EIP-155) transactions allowed over RPC"),
  malformed: (detail: string) => refusal("rejected", detail),
  /** Refusal of a node that does not hold the key. It says nothing about the transaction itself. */
  unknownAccount: () => refusal("unknown", "unknown account"),
  /** Refusal because the mempool is full. It may soon have space again, so this refusal decides nothing. */
  poolFull: () => refusal("unknown", "txpool is full"),
} as const;
