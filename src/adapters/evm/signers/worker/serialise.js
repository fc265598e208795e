// @ts-check
import { keccak256, keccakLoaded } from "../../threads/keccak.js";
import { bytes, EMPTY, integer, integerFromHex, list } from "../../threads/rlp.js";

/**
 * @typedef {import("../../../../domain/transaction/transaction.ts").UnsignedTransaction} UnsignedTransaction
 * @typedef {import("../../../../domain/transaction/transaction.ts").AccessListEntry} AccessListEntry
 * @typedef {import("../../../../ports/signer.ts").SignedTransaction} SignedTransaction
 */

/**
 * @typedef {object} EthereumSignature
 * @property {string} r hex, 32 bytes, no prefix
 * @property {string} s hex, 32 bytes, no prefix
 * @property {0 | 1} yParity
 */

/**
 * A transaction for the signing thread: type (EIP-2718, 0 for legacy), chain id, and fields as RLP without the list
 * header, whose length depends on the signature. Copying it to a thread takes a quarter of the time of an object with
 * bigints.
 *
 * @typedef {readonly [type: 0 | 1 | 2, chainId: number, fields: string]} EncodedTransaction
 */

const TYPES = /** @type {const} */ ({ legacy: 0, eip2930: 1, eip1559: 2 });

/**
 * Encodes an unsigned transaction for the signing thread.
 *
 * @param {UnsignedTransaction} transaction
 * @returns {EncodedTransaction}
 */
export function encodeTransaction({ chainId, nonce, to, data, value, gas, fees, accessList }) {
  const price =
    fees.type === "eip1559" ? integer(fees.maxPriorityFeePerGas) + integer(fees.maxFeePerGas) : integer(fees.gasPrice);
  const body = integer(nonce) + price + integer(gas) + bytes(to ?? "0x") + integer(value) + bytes(data);
  if (fees.type !== "legacy") return [TYPES[fees.type], chainId, integer(chainId) + body + accessListOf(accessList)];
  if (accessList.length > 0) throw new TypeError("a legacy transaction cannot have an access list");
  return [TYPES.legacy, chainId, body];
}

/**
 * The bytes whose hash is signed: legacy with EIP-155 replay protection, EIP-2930, EIP-1559.
 *
 * @param {EncodedTransaction} transaction
 * @returns {string} hex without prefix
 */
export function serialiseUnsigned([type, chainId, fields]) {
  return type === TYPES.legacy ? list(fields + integer(chainId) + EMPTY + EMPTY) : `0${type}${list(fields)}`;
}

/**
 * Encodes a signed transaction.
 *
 * @param {EncodedTransaction} transaction
 * @param {EthereumSignature} signature
 * @returns {string} hex without prefix
 */
export function serialiseSigned([type, chainId, fields], { r, s, yParity }) {
  const scalars = integerFromHex(r) + integerFromHex(s);
  if (type !== TYPES.legacy) return `0${type}${list(fields + integer(yParity) + scalars)}`;
  const v = BigInt(chainId) * 2n + 35n + BigInt(yParity);
  return list(fields + integer(v) + scalars);
}

/** Encodes an access list (EIP-2930). @param {readonly AccessListEntry[]} entries */
function accessListOf(entries) {
  return list(
    entries.map(({ address, storageKeys }) => list(bytes(address) + list(storageKeys.map(bytes).join("")))).join(""),
  );
}

/**
 * Signs a transaction, and computes its bytes and hash.
 *
 * @param {EncodedTransaction} transaction
 * @param {(hash: Uint8Array) => EthereumSignature | Promise<EthereumSignature>} sign of its hash
 * @returns {Promise<SignedTransaction>}
 */
export async function signTransaction(transaction, sign) {
  await keccakLoaded;
  const raw = serialiseSigned(transaction, await sign(hashToSign(transaction)));
  return { rawTransaction: `0x${raw}`, txHash: toHex(keccak256(Buffer.from(raw, "hex"))) };
}

/**
 * Signs the digest of a message: r, s and v in 65 bytes, with v 27 or 28 as contracts and libraries expect.
 *
 * @param {`0x${string}`} digest
 * @param {(hash: Uint8Array) => EthereumSignature | Promise<EthereumSignature>} sign
 * @returns {Promise<`0x${string}`>}
 */
export async function signDigest(digest, sign) {
  const { r, s, yParity } = await sign(Buffer.from(digest.slice(2), "hex"));
  return `0x${r.padStart(64, "0")}${s.padStart(64, "0")}${(27 + yParity).toString(16)}`;
}

/** Hash of the unsigned transaction, which the key signs. Needs `keccakLoaded`. @param {EncodedTransaction} transaction */
export const hashToSign = (transaction) => keccak256(Buffer.from(serialiseUnsigned(transaction), "hex"));

/** Converts bytes to hex with prefix. @param {Uint8Array} bytes @returns {`0x${string}`} */
export const toHex = (bytes) => `0x${Buffer.from(bytes).toString("hex")}`;
