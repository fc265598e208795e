/** Between the domain's values and columns. Hex travels without its prefix where the column is bytea. */
import type { Fees, FeeWishes } from "../../domain/fees.ts";
import type { Address, Hash, Hex, Lane } from "../../domain/lane.ts";
import type { AccessListEntry, Payload, Receipt } from "../../domain/transaction.ts";

/** So far above its nonce a transaction stands while it moves: beyond any nonce there is. */
export const OUT_OF_THE_WAY = 2 ** 52;

export function bare(hex: Hex): string {
  return hex.slice(2);
}

export function prefixed(hex: string): Hex {
  return `0x${hex}`;
}

export function laneOf(row: { readonly chain_id: number; readonly signer: string }): Lane {
  return { chainId: row.chain_id, signer: row.signer as Address };
}

export interface FeeColumns {
  readonly fee_type: string | null;
  readonly gas_price: bigint | null;
  readonly max_fee_per_gas: bigint | null;
  readonly max_priority_fee_per_gas: bigint | null;
}

/** Wei as text: JSON numbers are doubles. */
function feeValues(fees: FeeWishes) {
  return {
    fee_type: fees.type,
    gas_price: fees.gasPrice?.toString(),
    max_fee_per_gas: fees.maxFeePerGas?.toString(),
    max_priority_fee_per_gas: fees.maxPriorityFeePerGas?.toString(),
  };
}

export function feesOf(row: FeeColumns): Fees {
  if (row.fee_type === "eip1559") {
    return {
      type: "eip1559",
      maxFeePerGas: row.max_fee_per_gas as bigint,
      maxPriorityFeePerGas: row.max_priority_fee_per_gas as bigint,
    };
  }
  return { type: row.fee_type as "legacy" | "eip2930", gasPrice: row.gas_price as bigint };
}

export interface PayloadColumns extends FeeColumns {
  readonly to_address: string | null;
  readonly data: string;
  readonly value: bigint;
  readonly gas: number | null;
  readonly access_list: readonly AccessListEntry[] | null;
}

export function payloadValues(payload: Payload) {
  return {
    to_address: payload.to,
    data: bare(payload.data),
    value: payload.value.toString(),
    gas: payload.gas?.toString(),
    access_list: payload.accessList,
    ...feeValues(payload),
  };
}

export function payloadOf(row: PayloadColumns): Payload {
  return {
    to: row.to_address as Address | null,
    data: prefixed(row.data),
    value: row.value,
    ...(row.gas === null ? {} : { gas: BigInt(row.gas) }),
    ...(row.fee_type === null ? {} : { type: row.fee_type as Fees["type"] }),
    ...(row.gas_price === null ? {} : { gasPrice: row.gas_price }),
    ...(row.max_fee_per_gas === null ? {} : { maxFeePerGas: row.max_fee_per_gas }),
    ...(row.max_priority_fee_per_gas === null ? {} : { maxPriorityFeePerGas: row.max_priority_fee_per_gas }),
    ...(row.access_list === null ? {} : { accessList: row.access_list }),
  };
}

export interface ReceiptColumns {
  readonly receipt_tx_hash: string | null;
  readonly block_number: number | null;
  readonly block_hash: string | null;
  readonly transaction_index: number | null;
  readonly receipt_status: string | null;
  readonly gas_used: number | null;
  readonly effective_gas_price: bigint | null;
  readonly contract_address: string | null;
}

export function receiptOf(row: ReceiptColumns): Receipt | null {
  if (row.receipt_tx_hash === null) return null;
  return {
    txHash: row.receipt_tx_hash as Hash,
    blockNumber: row.block_number as number,
    blockHash: row.block_hash as Hash,
    transactionIndex: row.transaction_index as number,
    status: row.receipt_status as Receipt["status"],
    gasUsed: BigInt(row.gas_used as number),
    effectiveGasPrice: row.effective_gas_price,
    contractAddress: row.contract_address as Address | null,
  };
}
