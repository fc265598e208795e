import type { SubmitAnswer } from "../../../domain/chain/answers.ts";
import { type NodeError, revertDataOf, textsOf } from "../codec/error-texts.ts";

/**
 * Texts with which nodes answer a submission. `says` is compared, ignoring case, with the beginning of each clause of
 * the node's text; `…` matches anything. A missing entry means `unknown`, which costs one retry. A wrong entry can cost
 * a transaction: if in doubt, leave it out.
 *
 * `unknown` entries are texts that look decisive but are not. They overrule every other clause.
 */
export interface Wording {
  readonly says: string;
  readonly answer: Exclude<SubmitAnswer, "accepted">;
  /** Clients that use this text, as docs/node-answers.md lists them. */
  readonly by: readonly string[];
  /** A more precise reason, used when a call is simulated. */
  readonly cause?: "gasTooLow" | "gasOverBlock";
  /** True if the text names a gas limit for one transaction, below the block's limit. Such a limit is remembered. */
  readonly perTransaction?: true;
}

/**
 * Makes the entries of all texts with one meaning. In each text, the part after the bar names the clients that use it.
 */
function meaning(means: Omit<Wording, "says" | "by">, ...wordings: readonly string[]): readonly Wording[] {
  return wordings.map((wording) => {
    const [says = "", by = ""] = wording.split(" | ");
    return { says, by: by.split(", "), ...means };
  });
}

export const SUBMISSION_WORDINGS: readonly Wording[] = [
  ...meaning(
    { answer: "alreadyKnown" },
    "already known | geth, Erigon, Reth, Nethermind, op-geth, bor",
    "alreadyknown | Nethermind",
    "known transaction | geth, Besu, EDR, zkSync, Klaytn",
    "already imported | anvil, Reth",
    "transaction already imported | anvil",
    "transaction with the same hash was already imported | OpenEthereum",
    "existing tx with same hash | Erigon",
    "existing txn with same hash | Erigon",
    "tx already exists in cache | Sei",
  ),
  ...meaning(
    { answer: "nonceConsumed" },
    "nonce too low | geth, Erigon, Nethermind, Besu, Reth, anvil",
    "nonce is too low | OpenEthereum",
    "transaction nonce is too low | OpenEthereum",
    "transaction nonce too low | EDR",
    "oldnonce | Nethermind",
    "transaction already finalized | Harmony",
  ),
  /**
   * Texts that mean that the node would accept the transaction later, after lower nonces. Refusals by pools that allow
   * a delegated account (EIP-7702) only one pending transaction belong here too.
   */
  ...meaning(
    { answer: "nonceTooHigh" },
    "nonce too high | geth, Besu, Reth, anvil, Nitro, zkSync",
    "noncegap | Nethermind",
    "noncetoofarinfuture | Nethermind",
    "nonce too far in future | Nethermind",
    "delegation nonce gap | Nethermind",
    "transaction nonce is too distant from current sender nonce | Besu",
    "an invalid transaction with a lower nonce exists | Besu",
    "future transaction tries to replace pending | geth, bor, op-geth",
    "gapped-nonce tx from delegated accounts | geth",
    "in-flight transaction limit reached for delegated accounts | geth",
    "account limit exceeded | geth",
  ),
  ...meaning(
    { answer: "underpriced" },
    "replacement transaction underpriced | geth, Besu, Reth, EDR, Erigon",
    "transaction underpriced | geth, Reth, Nethermind, bor, op-geth",
    "underpriced | Erigon",
    "transaction gas price below minimum | geth, bor",
    "fee too low | Erigon",
    "could not replace existing tx | Erigon, bor",
    "replaced by transaction with higher tip | Erigon",
    "max fee per gas less than block base fee | geth, Reth, Nitro, zkSync",
    "max fee per blob gas less than block blob gas fee | geth, Reth",
    "feetoolow | Nethermind",
    "feetoolowtocompete | Nethermind",
    "replacementnotallowed | Nethermind",
    "gas price below configured minimum gas price | Besu",
    "gas price below current base fee | Besu",
    "is below configured minimum gas price | Hedera",
    "insufficient gas price to replace existing transaction | anvil, Reth",
    "is too low for the next block | EDR",
    "transaction gas price … is too low | OpenEthereum",
    "transaction gas price is too low | OpenEthereum",
    "transaction priority fee below minimum required priority fee | Reth",
    "gas price too low | Nitro, Metis",
    "there is another tx which has the same nonce in the tx pool | Klaytn",
  ),
  ...meaning(
    { answer: "insufficientFunds" },
    "insufficient funds | geth, Erigon, Reth, anvil, Nitro, zkSync",
    "insufficientfunds | Nethermind",
    "insufficient balance for transfer | geth, zkSync",
    "insufficient balance for transaction | OpenEthereum",
    "insufficient sender balance | Nethermind",
    "transaction would cause overdraft | geth",
    "transaction overdraws from account | Reth",
    "upfront cost exceeds account balance | Besu",
    "transaction up-front cost … exceeds transaction sender account balance | Besu",
    "sender doesn't have enough funds to send tx | EDR",
    "not enough funds for gas | Nitro",
    "not enough balance to cover the fee | zkSync",
  ),
  ...meaning(
    { answer: "rejected", cause: "gasTooLow" },
    "intrinsic gas too low | geth, Reth, anvil, zkSync",
    "intrinsicgas | Erigon",
    "intrinsic gas exceeds gas limit | Besu",
    "intrinsic gas cost … exceeds gas limit | Besu",
    "insufficient gas for floor data gas cost | geth",
    "transaction requires at least … gas but got | EDR",
    "transaction gas is too low | OpenEthereum",
  ),
  ...meaning(
    { answer: "rejected", cause: "gasOverBlock" },
    "exceeds block gas limit | geth, Erigon, Reth, zkSync",
    "transaction gas limit … exceeds block gas limit | EDR",
    "transaction gas limit exceeds block gas limit | Besu",
    "transaction gas limit is greater than the block gas limit | anvil",
    "transaction's gas limit … exceeds block's gas limit | Reth",
    "exceeds max transaction gas limit | Reth",
    "intrinsic gas too high | anvil, Reth",
    "gas limit is too high | Erigon",
    "gaslimitexceeded | Nethermind",
    // Newer error texts of Nethermind begin with "gas limit reached", which geth uses for a full block. Only the
    // following detail, later in Nethermind's text, shows the difference.
    "gas limit of rejected tx | Nethermind",
    "transaction cost exceeds current gas limit | OpenEthereum",
  ),
  ...meaning(
    { answer: "rejected", cause: "gasOverBlock", perTransaction: true },
    "transaction gas limit … exceeds transaction gas cap | EDR",
    "is greater than the cap | EDR, anvil, Reth",
    "transaction gas limit must be at most | Besu",
    "transaction gas limit too high | geth",
    "exceeds maximum per-transaction gas limit | op-geth",
    "txgaslimitcapexceeded | Nethermind",
  ),
  /** Texts that mean that the submitted bytes will never be accepted, at least not by this node. */
  ...meaning(
    { answer: "rejected" },
    "invalid sender | geth, Erigon, Reth",
    "invalid signature | Besu, OpenEthereum, EDR",
    "invalid transaction signature | Reth",
    "invalid transaction v | geth",
    "invalidtxsignature | Nethermind",
    "failedtoresolvesender | Nethermind",
    "failed to recover sender | Nethermind",
    "invalid chain id | geth, Reth, anvil",
    "invalidtxchainid | Nethermind",
    "wrong chainid | Besu",
    "chainid not supported | Besu",
    "chainid is required | Besu",
    "incompatible eip-155 transaction | anvil",
    "trying to send an incompatible eip-155 transaction | EDR",
    "trying to send a raw transaction with an invalid chainid | EDR",
    "only replay-protected | geth",
    "transaction type not supported | geth, Reth, Nitro",
    "unsupported transaction type | Nethermind",
    "invalid transaction type | Besu",
    "notsupportedtxtype | Nethermind",
    "fork supporting this transaction type is not activated yet | Erigon",
    "oversized data | geth, Erigon, Reth",
    "transaction too large | Nethermind",
    "maxtxsizeexceeded | Nethermind",
    "tx too large | Sei",
    "rlptoolong | Erigon",
    "max initcode size exceeded | geth, Reth, anvil, Nethermind",
    "initcode too large | Erigon",
    "trying to send a deployment transaction whose init code length is | EDR",
    "contract creation without any data provided | EDR",
    "invalid eip-7702 transaction | EDR",
    "gas uint64 overflow | geth, Reth, anvil",
    "gasuintoverflow | Erigon",
    "int256overflow | Nethermind",
    "transaction cost overflow | Nethermind",
    "negative value | geth, Erigon",
    "nonce has max value | geth, Reth, anvil",
    // Nethermind refuses the nonce 2^64 - 1 with this text (EIP-2681). It does not mean a nonce gap.
    "noncetoohigh | Nethermind",
    "max priority fee per gas higher than max fee per gas | geth, Reth, zkSync",
    "max priority fee per gas exceeds max fee per gas | Besu",
    "invalidmaxpriorityfeepergas | Nethermind",
    "max fee per gas higher than 2^256-1 | geth",
    "exceeds the configured cap | geth, Erigon, Reth",
    "transaction fee cap exceeded | Besu",
    "sender not an eoa | geth, anvil, Nethermind",
    "sender is not an eoa | Reth",
    "senderiscontract | Nethermind",
    "sender account not authorized to send transactions | Besu",
    "forbidden sender address | Nitro",
    "failed to decode signed transaction | Reth, anvil",
    "failed to decode transaction | anvil",
    "typed transaction too short | geth",
    "rlp | geth, Erigon",
    "invalid rlp data | OpenEthereum",
  ),
  /**
   * Texts that give no final answer about the submitted bytes: the node may be full, busy or starting, or the text may
   * be about another transaction.
   */
  ...meaning(
    { answer: "unknown" },
    "txpool is full | geth, Reth",
    "pending sub-pool is full | Erigon",
    "transaction pool not enabled | Besu",
    "address already reserved | geth, Reth",
    "authority already reserved | geth",
    // The node's pool already has a transaction with this nonce, sent by Fencepost or by another program.
    "ownnoncealreadyused | Nethermind",
    "insertion of another transaction with the same nonce is in progress | zkSync",
    "node is syncing | Nethermind",
    "server shutting down | zkSync",
  ),
];

/**
 * Maps a node's refusal of `eth_sendRawTransaction` to what may be done next. Only the text counts: clients use the
 * codes differently (-32005 is a gas limit in Besu and a rate limit at Infura). A text that is not recognised, or that
 * matches two meanings, is `unknown` (invariant I7).
 */
export function classifySubmission(error: NodeError): Exclude<SubmitAnswer, "accepted"> {
  if (looksReverted(error)) return "unknown";
  const answers = new Set(recogniseWordings(error).map((wording) => wording.answer));
  const [answer, another] = answers;
  return answer === undefined || another !== undefined ? "unknown" : answer;
}

/**
 * Reads from a refusal the gas limit for one transaction; null if the refusal is about something else or contains no
 * number.
 */
export function namedGasCap(error: NodeError): bigint | null {
  if (!recogniseWordings(error).some(({ perTransaction }) => perTransaction === true)) return null;
  for (const text of textsOf(error)) {
    const [, cap, most, limit] = NAMED_CAP.exec(text) ?? [];
    const digits = cap ?? most ?? limit;
    if (digits !== undefined) return BigInt(digits);
  }
  return null;
}

/**
 * Matches the gas limit in the texts of geth "(cap: 16777216, tx: …)", revm "the cap (16777216)", Nethermind and EDR
 * "cap of …", Besu "at most …", Base ", limit …".
 */
const NAMED_CAP = /\bcap(?: of|:)? \(?(\d{1,20})\b|\bat most (\d{1,20})\b|, limit (\d{1,20})\b/i;

/** Returns every entry of the table whose text begins a clause of the node's error. */
export function recogniseWordings(error: NodeError): readonly Wording[] {
  const clauses = textsOf(error).flatMap(clausesOf);
  return MATCHERS.filter(({ pattern }) => clauses.some((clause) => pattern.test(clause))).map(({ wording }) => wording);
}

/**
 * True if the transaction was executed and reverted: in a simulation before the pool, or already in a block (on a chain
 * that mines at once). Then the contract chose the text: `require(false, "nonce too low")` is not about nonces. It is
 * no final rejection either, because the call may succeed in another state.
 */
function looksReverted(error: NodeError) {
  return revertDataOf(error.data) !== null || textsOf(error).some((text) => REVERTED.test(text));
}

const REVERTED = /\brevert(ed|s)?\b|vm exception|execution failed/i;

/**
 * Splits a node's error text at punctuation. Clients append details after a colon; gateways add prefixes or quotes. A
 * known text must match the beginning of a clause, so that "authority nonce too low" and "block already known" do not
 * match "nonce too low" and "already known". An apostrophe inside a word and a dot inside a number do not split.
 */
function clausesOf(text: string): readonly string[] {
  return text
    .toLowerCase()
    .split(CLAUSE_ENDS)
    .map((clause) => clause.trim())
    .filter((clause) => clause !== "");
}

const CLAUSE_ENDS = /[:;,="()[\]{}|\\<>\n\r]|\.(?=\s|$)|(?<!\w)'|'(?!\w)/;

const MATCHERS = SUBMISSION_WORDINGS.map((wording) => ({ wording, pattern: toPattern(wording.says) }));

function toPattern(says: string) {
  const parts = says.toLowerCase().split("…");
  const source = parts.map((part) => part.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(" .* ");
  return new RegExp(`^${source}(?:\\s|$)`);
}
