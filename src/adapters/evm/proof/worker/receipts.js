// @ts-check
import { integer, list } from "../../threads/rlp.js";
import { data, fieldsOf, listOf, quantity } from "./fields.js";
import { typeOf } from "./transactions.js";

/**
 * Encoding of a receipt in the receipts root: status, cumulative gas, bloom and logs (EIP-658, EIP-2718). It contains
 * neither the transaction's hash, nor its own gas, nor the address of a created contract.
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

/** @param {unknown} logs */
function encodeLogs(logs) {
  const encoded = listOf(logs).map((log) => {
    const { address, topics, data: content } = fieldsOf(log);
    return list(data(address) + list(listOf(topics).map(data).join("")) + data(content));
  });
  return encoded.join("");
}
