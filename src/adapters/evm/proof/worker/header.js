// @ts-check
import { list } from "../../threads/rlp.js";
import { data, isPresent, keccak, quantity } from "./fields.js";

/**
 * @typedef {import("./fields.js").Fields} Fields
 */

/** Header fields since Frontier, in the order of the encoding. @type {readonly [string, (value: unknown) => string][]} */
const FIRST = [
  ["parentHash", data],
  ["sha3Uncles", data],
  ["miner", data],
  ["stateRoot", data],
  ["transactionsRoot", data],
  ["receiptsRoot", data],
  ["logsBloom", data],
  ["difficulty", quantity],
  ["number", quantity],
  ["gasLimit", quantity],
  ["gasUsed", quantity],
  ["timestamp", quantity],
  ["extraData", data],
  ["mixHash", data],
  ["nonce", data],
];

/** Header fields that forks appended: EIP-1559, EIP-4895, EIP-4844 (two), EIP-4788, EIP-7685. @type {typeof FIRST} */
const APPENDED = [
  ["baseFeePerGas", quantity],
  ["withdrawalsRoot", data],
  ["blobGasUsed", quantity],
  ["excessBlobGas", quantity],
  ["parentBeaconBlockRoot", data],
  ["requestsHash", data],
];

/**
 * Hash of a block header, in the encoding of the fork whose fields the header has. On a chain with additional fields,
 * or after a later fork, the result differs from the block's hash.
 *
 * @param {Fields} block
 * @returns {string} with prefix
 */
export function headerHash(block) {
  const fields = [...FIRST, ...APPENDED.filter(([name]) => isPresent(block[name]))];
  return `0x${keccak(list(fields.map(([name, encode]) => encode(block[name])).join("")))}`;
}
