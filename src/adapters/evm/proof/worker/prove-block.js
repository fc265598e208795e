// @ts-check
import { BadAnswer } from "../../threads/read.js";
import { fieldsOf, isPresent, keccak, listOf, numberOf, textOf } from "./fields.js";
import { headerHash } from "./header.js";
import { orderedTrieRoot } from "./ordered-trie.js";
import { encodeReceipt, encodeTransaction, LAST_TYPE, pricePaid, typeOf } from "./transactions.js";

/**
 * Checks a block that a node returned against the block's hash: the header must hash to it, and the transactions and
 * receipts must hash to the roots in the header. A false receipt would need a second block with the same hash.
 *
 * @typedef {import("./fields.js").Fields} Fields
 *
 * @typedef {object} BlockEvidence
 * @property {string} hash the known hash of the block
 * @property {number} number
 * @property {unknown} block with whole transactions, as the node returned it
 * @property {readonly unknown[]} receipts of all its transactions, as the node returned them
 * @property {readonly string[]} wanted hashes of the transactions to prove
 *
 * @typedef {object} ProvedTransaction
 * @property {string} txHash
 * @property {string} raw its bytes, with prefix
 * @property {bigint} pricePaid
 * @property {Fields} receipt
 *
 * @typedef {{ readonly kind: "proved", readonly transactions: readonly ProvedTransaction[] }} Proved those of `wanted`
 * that the block contains
 * @typedef {{ readonly kind: "contradicts", readonly detail: string }} Contradicts
 * @typedef {{ readonly kind: "unprovable", readonly of: "chain" | "block", readonly detail: string }} Unprovable
 * @typedef {Proved | Contradicts | Unprovable} BlockVerdict
 */

/**
 * Proves a block, or says why that is not possible.
 *
 * @param {BlockEvidence} evidence
 * @returns {BlockVerdict}
 */
export function proveBlock(evidence) {
  try {
    const block = fieldsOf(evidence.block);
    if (headerHash(block) !== evidence.hash) return unprovable("its header does not hash to the block's hash");
    if (numberOf(block.number) !== BigInt(evidence.number))
      return contradicts("that hash belongs to a block at another height");
    const transactions = listOf(block.transactions).map(fieldsOf);
    const foreign = transactions.find((each) => typeOf(each) > LAST_TYPE);
    if (foreign !== undefined) return unprovable(`it contains a transaction of type ${typeOf(foreign)}`);
    return proveContents(evidence, block, transactions);
  } catch (error) {
    if (error instanceof BadAnswer) return unprovable(error.message);
    throw error;
  }
}

/** Verdict for a reason that makes every block of the chain unprovable. @param {string} detail @returns {Unprovable} */
const unprovable = (detail) => ({ kind: "unprovable", of: "chain", detail });

/** Verdict for a response that contradicts the block's hash. @param {string} detail @returns {Contradicts} */
const contradicts = (detail) => ({ kind: "contradicts", detail });

/**
 * Checks transactions and receipts against the roots in a header that is already proved.
 *
 * @param {BlockEvidence} evidence
 * @param {Fields} block
 * @param {readonly Fields[]} transactions
 * @returns {BlockVerdict}
 */
function proveContents({ receipts, wanted }, block, transactions) {
  const raws = transactions.map(encodeTransaction);
  const hashes = raws.map((raw) => `0x${keccak(raw)}`);
  const misnamed = transactions.findIndex(({ hash }, index) => textOf(hash) !== hashes[index]);
  if (misnamed >= 0) return judgeMisnamed(textOf(transactions[misnamed]?.hash), wanted);
  if (`0x${orderedTrieRoot(raws)}` !== textOf(block.transactionsRoot)) {
    return contradicts("its transactions, in their order, do not hash to the block's transactionsRoot");
  }
  /** @type {Map<string, Fields>} */
  const byHash = new Map();
  for (const receipt of receipts.map(fieldsOf)) byHash.set(textOf(receipt.transactionHash), receipt);
  const ordered = hashes.map((hash) => byHash.get(hash)).filter((receipt) => receipt !== undefined);
  if (ordered.length !== hashes.length) return contradicts("it has no receipt of a transaction of the block");
  if (`0x${orderedTrieRoot(ordered.map(encodeReceipt))}` !== textOf(block.receiptsRoot)) {
    return contradicts("its receipts do not hash to the block's receiptsRoot");
  }
  const proved = wanted.flatMap((txHash) => {
    const index = hashes.indexOf(txHash);
    return index < 0 ? [] : [index];
  });
  const wrong = proved.find((index) => !isItsOwn(ordered, index, transactions[index]));
  if (wrong !== undefined) return contradicts(`the receipt of ${hashes[wrong]} contradicts its block`);
  return {
    kind: "proved",
    transactions: proved.map((index) => ({
      txHash: /** @type {string} */ (hashes[index]),
      raw: `0x${raws[index]}`,
      pricePaid: pricePaid(/** @type {Fields} */ (transactions[index]), block.baseFeePerGas),
      receipt: /** @type {Fields} */ (ordered[index]),
    })),
  };
}

/**
 * Verdict for a block that lists a transaction whose contents do not hash to its listed hash. If the transaction is one
 * of `wanted`, the response contradicts that hash. Otherwise the block is unprovable: Bor lists transactions that the
 * block does not commit to, under hashes that do not match their contents.
 *
 * @param {string} hash
 * @param {readonly string[]} wanted
 * @returns {BlockVerdict}
 */
function judgeMisnamed(hash, wanted) {
  if (wanted.includes(hash)) return contradicts(`it shows contents for ${hash} that do not hash to it`);
  return { kind: "unprovable", of: "block", detail: `its transaction ${hash} does not hash to that` };
}

/**
 * Checks receipt fields that the block's hash does not commit to. `gasUsed` must be the difference of two cumulative
 * sums. Only a transaction without a receiver creates a contract (some nodes report an address even if the deployment
 * reverted).
 *
 * @param {readonly Fields[]} receipts in order
 * @param {number} index
 * @param {Fields | undefined} transaction
 */
function isItsOwn(receipts, index, transaction) {
  const { status, gasUsed, cumulativeGasUsed, contractAddress } = /** @type {Fields} */ (receipts[index]);
  const before = index === 0 ? 0n : numberOf(receipts[index - 1]?.cumulativeGasUsed);
  if (numberOf(gasUsed) !== numberOf(cumulativeGasUsed) - before) return false;
  const deploys = !isPresent(transaction?.to);
  return isPresent(contractAddress) ? deploys : !deploys || numberOf(status) === 0n;
}
