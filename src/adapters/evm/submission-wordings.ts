import type { SubmitAnswer } from "../../domain/answers.ts";

/**
 * What nodes really say to a submission, as data. `says` is matched, without regard to case, against the beginning of
 * each clause of the node's text (see classify-submission.ts); `…` stands for anything. A wording that is not here is
 * `unknown`, which costs a repetition; a wrong entry here can cost a transaction. When in doubt, leave it out.
 *
 * `unknown` entries are wordings that look decisive and are not: they outvote every other clause.
 */
export interface Wording {
  readonly says: string;
  readonly answer: Exclude<SubmitAnswer, "accepted">;
  readonly by: readonly Client[];
  /** Finer than the answer, for the simulation of a call. */
  readonly cause?: "gasTooLow" | "gasOverBlock";
  /** Speaks of a limit for one transaction, which a block could hold more than: that one can be learned. */
  readonly perTransaction?: true;
}

export type Client =
  | "geth"
  | "Erigon"
  | "Nethermind"
  | "Besu"
  | "Reth"
  | "anvil"
  | "EDR"
  | "OpenEthereum"
  | "Nitro"
  | "op-geth"
  | "zkSync"
  | "bor"
  | "Klaytn"
  | "Harmony"
  | "Sei"
  | "Hedera"
  | "Metis";

const ALREADY_KNOWN: readonly Wording[] = [
  { says: "already known", answer: "alreadyKnown", by: ["geth", "Erigon", "Reth", "Nethermind", "op-geth", "bor"] },
  { says: "alreadyknown", answer: "alreadyKnown", by: ["Nethermind"] },
  { says: "known transaction", answer: "alreadyKnown", by: ["geth", "Besu", "EDR", "zkSync", "Klaytn"] },
  { says: "already imported", answer: "alreadyKnown", by: ["anvil", "Reth"] },
  { says: "transaction already imported", answer: "alreadyKnown", by: ["anvil"] },
  { says: "transaction with the same hash was already imported", answer: "alreadyKnown", by: ["OpenEthereum"] },
  { says: "existing tx with same hash", answer: "alreadyKnown", by: ["Erigon"] },
  { says: "existing txn with same hash", answer: "alreadyKnown", by: ["Erigon"] },
  { says: "tx already exists in cache", answer: "alreadyKnown", by: ["Sei"] },
];

const NONCE_CONSUMED: readonly Wording[] = [
  { says: "nonce too low", answer: "nonceConsumed", by: ["geth", "Erigon", "Nethermind", "Besu", "Reth", "anvil"] },
  { says: "nonce is too low", answer: "nonceConsumed", by: ["OpenEthereum"] },
  { says: "transaction nonce is too low", answer: "nonceConsumed", by: ["OpenEthereum"] },
  { says: "transaction nonce too low", answer: "nonceConsumed", by: ["EDR"] },
  { says: "oldnonce", answer: "nonceConsumed", by: ["Nethermind"] },
  { says: "transaction already finalized", answer: "nonceConsumed", by: ["Harmony"] },
];

/** The node would take it later: lower nonces first. Pools that give a delegated account one slot belong here too. */
const NONCE_TOO_HIGH: readonly Wording[] = [
  { says: "nonce too high", answer: "nonceTooHigh", by: ["geth", "Besu", "Reth", "anvil", "Nitro", "zkSync"] },
  { says: "noncegap", answer: "nonceTooHigh", by: ["Nethermind"] },
  { says: "noncetoofarinfuture", answer: "nonceTooHigh", by: ["Nethermind"] },
  { says: "nonce too far in future", answer: "nonceTooHigh", by: ["Nethermind"] },
  { says: "delegation nonce gap", answer: "nonceTooHigh", by: ["Nethermind"] },
  { says: "transaction nonce is too distant from current sender nonce", answer: "nonceTooHigh", by: ["Besu"] },
  { says: "an invalid transaction with a lower nonce exists", answer: "nonceTooHigh", by: ["Besu"] },
  { says: "future transaction tries to replace pending", answer: "nonceTooHigh", by: ["geth", "bor", "op-geth"] },
  { says: "gapped-nonce tx from delegated accounts", answer: "nonceTooHigh", by: ["geth"] },
  { says: "in-flight transaction limit reached for delegated accounts", answer: "nonceTooHigh", by: ["geth"] },
  { says: "account limit exceeded", answer: "nonceTooHigh", by: ["geth"] },
];

const UNDERPRICED: readonly Wording[] = [
  { says: "replacement transaction underpriced", answer: "underpriced", by: ["geth", "Besu", "Reth", "EDR", "Erigon"] },
  { says: "transaction underpriced", answer: "underpriced", by: ["geth", "Reth", "Nethermind", "bor", "op-geth"] },
  { says: "underpriced", answer: "underpriced", by: ["Erigon"] },
  { says: "transaction gas price below minimum", answer: "underpriced", by: ["geth", "bor"] },
  { says: "fee too low", answer: "underpriced", by: ["Erigon"] },
  { says: "could not replace existing tx", answer: "underpriced", by: ["Erigon", "bor"] },
  { says: "replaced by transaction with higher tip", answer: "underpriced", by: ["Erigon"] },
  { says: "max fee per gas less than block base fee", answer: "underpriced", by: ["geth", "Reth", "Nitro", "zkSync"] },
  { says: "max fee per blob gas less than block blob gas fee", answer: "underpriced", by: ["geth", "Reth"] },
  { says: "feetoolow", answer: "underpriced", by: ["Nethermind"] },
  { says: "feetoolowtocompete", answer: "underpriced", by: ["Nethermind"] },
  { says: "replacementnotallowed", answer: "underpriced", by: ["Nethermind"] },
  { says: "gas price below configured minimum gas price", answer: "underpriced", by: ["Besu"] },
  { says: "gas price below current base fee", answer: "underpriced", by: ["Besu"] },
  { says: "is below configured minimum gas price", answer: "underpriced", by: ["Hedera"] },
  { says: "insufficient gas price to replace existing transaction", answer: "underpriced", by: ["anvil", "Reth"] },
  { says: "is too low for the next block", answer: "underpriced", by: ["EDR"] },
  { says: "transaction gas price … is too low", answer: "underpriced", by: ["OpenEthereum"] },
  { says: "transaction gas price is too low", answer: "underpriced", by: ["OpenEthereum"] },
  { says: "transaction priority fee below minimum required priority fee", answer: "underpriced", by: ["Reth"] },
  { says: "gas price too low", answer: "underpriced", by: ["Nitro", "Metis"] },
  { says: "there is another tx which has the same nonce in the tx pool", answer: "underpriced", by: ["Klaytn"] },
];

const INSUFFICIENT_FUNDS: readonly Wording[] = [
  {
    says: "insufficient funds",
    answer: "insufficientFunds",
    by: ["geth", "Erigon", "Reth", "anvil", "Nitro", "zkSync"],
  },
  { says: "insufficientfunds", answer: "insufficientFunds", by: ["Nethermind"] },
  { says: "insufficient balance for transfer", answer: "insufficientFunds", by: ["geth", "zkSync"] },
  { says: "insufficient balance for transaction", answer: "insufficientFunds", by: ["OpenEthereum"] },
  { says: "insufficient sender balance", answer: "insufficientFunds", by: ["Nethermind"] },
  { says: "transaction would cause overdraft", answer: "insufficientFunds", by: ["geth"] },
  { says: "transaction overdraws from account", answer: "insufficientFunds", by: ["Reth"] },
  { says: "upfront cost exceeds account balance", answer: "insufficientFunds", by: ["Besu"] },
  {
    says: "transaction up-front cost … exceeds transaction sender account balance",
    answer: "insufficientFunds",
    by: ["Besu"],
  },
  { says: "sender doesn't have enough funds to send tx", answer: "insufficientFunds", by: ["EDR"] },
  { says: "not enough funds for gas", answer: "insufficientFunds", by: ["Nitro"] },
  { says: "not enough balance to cover the fee", answer: "insufficientFunds", by: ["zkSync"] },
];

const GAS_TOO_LOW: readonly Wording[] = [
  { says: "intrinsic gas too low", answer: "rejected", cause: "gasTooLow", by: ["geth", "Reth", "anvil", "zkSync"] },
  { says: "intrinsicgas", answer: "rejected", cause: "gasTooLow", by: ["Erigon"] },
  { says: "intrinsic gas exceeds gas limit", answer: "rejected", cause: "gasTooLow", by: ["Besu"] },
  { says: "intrinsic gas cost … exceeds gas limit", answer: "rejected", cause: "gasTooLow", by: ["Besu"] },
  { says: "insufficient gas for floor data gas cost", answer: "rejected", cause: "gasTooLow", by: ["geth"] },
  { says: "transaction requires at least … gas but got", answer: "rejected", cause: "gasTooLow", by: ["EDR"] },
  { says: "transaction gas is too low", answer: "rejected", cause: "gasTooLow", by: ["OpenEthereum"] },
];

const GAS_OVER_BLOCK: readonly Wording[] = [
  {
    says: "exceeds block gas limit",
    answer: "rejected",
    cause: "gasOverBlock",
    by: ["geth", "Erigon", "Reth", "zkSync"],
  },
  { says: "transaction gas limit … exceeds block gas limit", answer: "rejected", cause: "gasOverBlock", by: ["EDR"] },
  {
    says: "transaction gas limit … exceeds transaction gas cap",
    answer: "rejected",
    cause: "gasOverBlock",
    perTransaction: true,
    by: ["EDR"],
  },
  {
    says: "is greater than the cap",
    answer: "rejected",
    cause: "gasOverBlock",
    perTransaction: true,
    by: ["EDR", "anvil", "Reth"],
  },
  {
    says: "transaction gas limit must be at most",
    answer: "rejected",
    cause: "gasOverBlock",
    perTransaction: true,
    by: ["Besu"],
  },
  { says: "transaction gas limit exceeds block gas limit", answer: "rejected", cause: "gasOverBlock", by: ["Besu"] },
  {
    says: "transaction gas limit is greater than the block gas limit",
    answer: "rejected",
    cause: "gasOverBlock",
    by: ["anvil"],
  },
  {
    says: "transaction's gas limit … exceeds block's gas limit",
    answer: "rejected",
    cause: "gasOverBlock",
    by: ["Reth"],
  },
  {
    says: "transaction gas limit too high",
    answer: "rejected",
    cause: "gasOverBlock",
    perTransaction: true,
    by: ["geth"],
  },
  {
    says: "exceeds maximum per-transaction gas limit",
    answer: "rejected",
    cause: "gasOverBlock",
    perTransaction: true,
    by: ["op-geth"],
  },
  { says: "exceeds max transaction gas limit", answer: "rejected", cause: "gasOverBlock", by: ["Reth"] },
  { says: "intrinsic gas too high", answer: "rejected", cause: "gasOverBlock", by: ["anvil", "Reth"] },
  { says: "gas limit is too high", answer: "rejected", cause: "gasOverBlock", by: ["Erigon"] },
  { says: "gaslimitexceeded", answer: "rejected", cause: "gasOverBlock", by: ["Nethermind"] },
  // Newer ones begin with "gas limit reached", which geth says of a full block: only the detail tells.
  { says: "gas limit of rejected tx", answer: "rejected", cause: "gasOverBlock", by: ["Nethermind"] },
  {
    says: "txgaslimitcapexceeded",
    answer: "rejected",
    cause: "gasOverBlock",
    perTransaction: true,
    by: ["Nethermind"],
  },
  {
    says: "transaction cost exceeds current gas limit",
    answer: "rejected",
    cause: "gasOverBlock",
    by: ["OpenEthereum"],
  },
];

/** No repetition of these bytes will ever help, at least not at this node. */
const REJECTED: readonly Wording[] = [
  { says: "invalid sender", answer: "rejected", by: ["geth", "Erigon", "Reth"] },
  { says: "invalid signature", answer: "rejected", by: ["Besu", "OpenEthereum", "EDR"] },
  { says: "invalid transaction signature", answer: "rejected", by: ["Reth"] },
  { says: "invalid transaction v", answer: "rejected", by: ["geth"] },
  { says: "invalidtxsignature", answer: "rejected", by: ["Nethermind"] },
  { says: "failedtoresolvesender", answer: "rejected", by: ["Nethermind"] },
  { says: "failed to recover sender", answer: "rejected", by: ["Nethermind"] },
  { says: "invalid chain id", answer: "rejected", by: ["geth", "Reth", "anvil"] },
  { says: "invalidtxchainid", answer: "rejected", by: ["Nethermind"] },
  { says: "wrong chainid", answer: "rejected", by: ["Besu"] },
  { says: "chainid not supported", answer: "rejected", by: ["Besu"] },
  { says: "chainid is required", answer: "rejected", by: ["Besu"] },
  { says: "incompatible eip-155 transaction", answer: "rejected", by: ["anvil"] },
  { says: "trying to send an incompatible eip-155 transaction", answer: "rejected", by: ["EDR"] },
  { says: "trying to send a raw transaction with an invalid chainid", answer: "rejected", by: ["EDR"] },
  { says: "only replay-protected", answer: "rejected", by: ["geth"] },
  { says: "transaction type not supported", answer: "rejected", by: ["geth", "Reth", "Nitro"] },
  { says: "unsupported transaction type", answer: "rejected", by: ["Nethermind"] },
  { says: "invalid transaction type", answer: "rejected", by: ["Besu"] },
  { says: "notsupportedtxtype", answer: "rejected", by: ["Nethermind"] },
  { says: "fork supporting this transaction type is not activated yet", answer: "rejected", by: ["Erigon"] },
  { says: "oversized data", answer: "rejected", by: ["geth", "Erigon", "Reth"] },
  { says: "transaction too large", answer: "rejected", by: ["Nethermind"] },
  { says: "maxtxsizeexceeded", answer: "rejected", by: ["Nethermind"] },
  { says: "tx too large", answer: "rejected", by: ["Sei"] },
  { says: "rlptoolong", answer: "rejected", by: ["Erigon"] },
  { says: "max initcode size exceeded", answer: "rejected", by: ["geth", "Reth", "anvil", "Nethermind"] },
  { says: "initcode too large", answer: "rejected", by: ["Erigon"] },
  { says: "trying to send a deployment transaction whose init code length is", answer: "rejected", by: ["EDR"] },
  { says: "contract creation without any data provided", answer: "rejected", by: ["EDR"] },
  { says: "invalid eip-7702 transaction", answer: "rejected", by: ["EDR"] },
  { says: "gas uint64 overflow", answer: "rejected", by: ["geth", "Reth", "anvil"] },
  { says: "gasuintoverflow", answer: "rejected", by: ["Erigon"] },
  { says: "int256overflow", answer: "rejected", by: ["Nethermind"] },
  { says: "transaction cost overflow", answer: "rejected", by: ["Nethermind"] },
  { says: "negative value", answer: "rejected", by: ["geth", "Erigon"] },
  { says: "nonce has max value", answer: "rejected", by: ["geth", "Reth", "anvil"] },
  // Not a gap: the nonce is 2^64 - 1 (EIP-2681).
  { says: "noncetoohigh", answer: "rejected", by: ["Nethermind"] },
  { says: "max priority fee per gas higher than max fee per gas", answer: "rejected", by: ["geth", "Reth", "zkSync"] },
  { says: "max priority fee per gas exceeds max fee per gas", answer: "rejected", by: ["Besu"] },
  { says: "invalidmaxpriorityfeepergas", answer: "rejected", by: ["Nethermind"] },
  { says: "max fee per gas higher than 2^256-1", answer: "rejected", by: ["geth"] },
  { says: "exceeds the configured cap", answer: "rejected", by: ["geth", "Erigon", "Reth"] },
  { says: "transaction fee cap exceeded", answer: "rejected", by: ["Besu"] },
  { says: "sender not an eoa", answer: "rejected", by: ["geth", "anvil", "Nethermind"] },
  { says: "sender is not an eoa", answer: "rejected", by: ["Reth"] },
  { says: "senderiscontract", answer: "rejected", by: ["Nethermind"] },
  { says: "sender account not authorized to send transactions", answer: "rejected", by: ["Besu"] },
  { says: "forbidden sender address", answer: "rejected", by: ["Nitro"] },
  { says: "failed to decode signed transaction", answer: "rejected", by: ["Reth", "anvil"] },
  { says: "failed to decode transaction", answer: "rejected", by: ["anvil"] },
  { says: "typed transaction too short", answer: "rejected", by: ["geth"] },
  { says: "rlp", answer: "rejected", by: ["geth", "Erigon"] },
  { says: "invalid rlp data", answer: "rejected", by: ["OpenEthereum"] },
];

/** The node may be full, busy, starting, or talking of another transaction: none of it is about these bytes for good. */
const NOT_DECISIVE: readonly Wording[] = [
  { says: "txpool is full", answer: "unknown", by: ["geth", "Reth"] },
  { says: "pending sub-pool is full", answer: "unknown", by: ["Erigon"] },
  { says: "transaction pool not enabled", answer: "unknown", by: ["Besu"] },
  { says: "address already reserved", answer: "unknown", by: ["geth", "Reth"] },
  { says: "authority already reserved", answer: "unknown", by: ["geth"] },
  // A transaction with this nonce is in the pool, ours or another.
  { says: "ownnoncealreadyused", answer: "unknown", by: ["Nethermind"] },
  { says: "insertion of another transaction with the same nonce is in progress", answer: "unknown", by: ["zkSync"] },
  { says: "node is syncing", answer: "unknown", by: ["Nethermind"] },
  { says: "server shutting down", answer: "unknown", by: ["zkSync"] },
];

export const SUBMISSION_WORDINGS: readonly Wording[] = [
  ...ALREADY_KNOWN,
  ...NONCE_CONSUMED,
  ...NONCE_TOO_HIGH,
  ...UNDERPRICED,
  ...INSUFFICIENT_FUNDS,
  ...GAS_TOO_LOW,
  ...GAS_OVER_BLOCK,
  ...REJECTED,
  ...NOT_DECISIVE,
];
