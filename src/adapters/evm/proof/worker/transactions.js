// @ts-check
import { integer, list } from "../../threads/rlp.js";
import { data, fieldsOf, isPresent, listOf, numberOf, quantity, receiver } from "./fields.js";

/**
 * @typedef {import("./fields.js").Fields} Fields
 */

/**
 * Highest transaction type with a known encoding. Types up to here: legacy, EIP-2930, EIP-1559, EIP-4844, EIP-7702.
 * Higher types are specific to a chain.
 */
export const LAST_TYPE = 4;

/** Type of a transaction. Old nodes omit it for legacy transactions. @param {Fields} fields */
export const typeOf = ({ type }) => (isPresent(type) ? Number(numberOf(type)) : 0);

/**
 * Encodes a transaction as in the block's transactions root: signed, without blob sidecars.
 *
 * @param {Fields} transaction of a type up to LAST_TYPE
 * @returns {string} hex without prefix
 */
export function encodeTransaction(transaction) {
  const type = typeOf(transaction);
  const { nonce, gas, to, value, input, r, s, v, yParity } = transaction;
  const body = quantity(gas) + receiver(to) + quantity(value) + data(input ?? transaction.data);
  const scalars = quantity(r) + quantity(s);
  if (type === 0) return list(quantity(nonce) + quantity(transaction.gasPrice) + body + quantity(v) + scalars);
  const chainId = quantity(transaction.chainId);
  const content = `${chainId}${quantity(nonce)}${price(transaction, type)}${body}${accessList(transaction.accessList)}`;
  return integer(type) + list(content + appended(transaction, type) + quantity(yParity ?? v) + scalars);
}

/**
 * Encodes a transaction's price fields.
 *
 * @param {Fields} transaction
 * @param {number} type
 */
function price({ gasPrice, maxPriorityFeePerGas, maxFeePerGas }, type) {
  return type === 1 ? quantity(gasPrice) : quantity(maxPriorityFeePerGas) + quantity(maxFeePerGas);
}

/**
 * Encodes the fields that EIP-4844 (type 3) and EIP-7702 (type 4) append.
 *
 * @param {Fields} transaction
 * @param {number} type
 */
function appended({ maxFeePerBlobGas, blobVersionedHashes, authorizationList }, type) {
  if (type === 3) return quantity(maxFeePerBlobGas) + list(listOf(blobVersionedHashes).map(data).join(""));
  return type === 4 ? list(listOf(authorizationList).map(authorization).join("")) : "";
}

/** Encodes one authorization of EIP-7702. @param {unknown} value */
function authorization(value) {
  const { chainId, address, nonce, yParity, v, r, s } = fieldsOf(value);
  return list(quantity(chainId) + data(address) + quantity(nonce) + quantity(yParity ?? v) + quantity(r) + quantity(s));
}

/** Encodes an access list (EIP-2930). @param {unknown} value */
function accessList(value) {
  if (!isPresent(value)) return list("");
  const entries = listOf(value).map((entry) => {
    const { address, storageKeys } = fieldsOf(entry);
    return list(
      data(address) +
        list(
          listOf(storageKeys ?? [])
            .map(data)
            .join(""),
        ),
    );
  });
  return list(entries.join(""));
}

/**
 * Price per gas that the sender paid (EIP-1559), from the transaction's fields and the block's base fee.
 *
 * @param {Fields} transaction
 * @param {unknown} baseFeePerGas
 * @returns {bigint}
 */
export function pricePaid(transaction, baseFeePerGas) {
  if (typeOf(transaction) < 2) return numberOf(transaction.gasPrice);
  const cap = numberOf(transaction.maxFeePerGas);
  const wished = numberOf(baseFeePerGas ?? "0x0") + numberOf(transaction.maxPriorityFeePerGas);
  return wished < cap ? wished : cap;
}

/**
 * Encodes a receipt as in the block's receipts root: status, cumulative gas, bloom and logs (EIP-658, EIP-2718). The
 * encoding contains neither the transaction's hash, nor the gas of the transaction alone, nor the address of a created
 * contract.
 *
 * @param {import("./fields.js").Fields} receipt
 * @returns {string} hex without prefix
 */
export function encodeReceipt(receipt) {
  const { status, cumulativeGasUsed, logsBloom, logs } = receipt;
  const type = typeOf(receipt);
  const body = list(quantity(status) + quantity(cumulativeGasUsed) + data(logsBloom) + list(encodeLogs(logs)));
  return type === 0 ? body : integer(type) + body;
}

/** Encodes the logs of a receipt. @param {unknown} logs */
function encodeLogs(logs) {
  const encoded = listOf(logs).map((log) => {
    const { address, topics, data: content } = fieldsOf(log);
    return list(data(address) + list(listOf(topics).map(data).join("")) + data(content));
  });
  return encoded.join("");
}
