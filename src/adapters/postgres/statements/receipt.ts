import type { Confirmation } from "../../../domain/chain/confirmations.ts";
import type { Receipt } from "../../../domain/transaction/transaction.ts";
import { lists, liveIds, names, overwritten, selected } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

const FOUND = `tx_hash text, block_number bigint, block_hash text, transaction_index integer, status text,
  gas_used gas, effective_gas_price numeric, contract_address text, beside_gas numeric, beside_gas_unsure boolean` as const;
const COLUMNS = `tx_id uuid, chain_id bigint, ${FOUND}` as const;

/** Stores receipts found on the canonical chain; a transaction has one at a time. $1 to $12, an array each. */
export const writeReceipts = taking(COLUMNS)("write-receipts")`
  INSERT INTO fencepost.receipt (${names(COLUMNS)})
  SELECT * FROM (${lists(COLUMNS)}) AS r
  ON CONFLICT (tx_id) ${overwritten(FOUND)}`;

/** Deletes receipts whose block left the canonical chain. */
export const deleteReceipts = statement("delete-receipts")`
  DELETE FROM fencepost.receipt AS r WHERE r.tx_id = ANY ($1::uuid[])`;

const RECEIPTS = `SELECT r.tx_id, ${selected("r", FOUND)} FROM fencepost.receipt AS r`;

/** Reads the receipts of these transactions. */
export const readReceipts = statement<ReceiptRow>("read-receipts")`
  ${RECEIPTS}
  WHERE r.tx_id = ANY ($1::uuid[])`;

export interface ReceiptRow extends Omit<Receipt, "besideGas" | "besideGasUnsure"> {
  readonly txId: string;
  readonly besideGas: bigint | null;
  readonly besideGasUnsure: true | null;
}

/** Reads the receipts of a lane's transactions that are sent and not settled, for the lane's owner. */
export const readTrackedReceipts = statement<ReceiptRow>("read-tracked-receipts")`
  ${RECEIPTS}
  WHERE r.tx_id = ANY (${liveIds("'TRACKING', 'STUCK'")})`;

/** Reads the blocks with a lane's settled transactions that are still checked for reorgs. */
export const readWatchedBlocks = statement<Confirmation>("read-watched-blocks")`
  SELECT DISTINCT r.block_number AS number, r.block_hash AS hash
  FROM fencepost.receipt AS r
  WHERE r.tx_id = ANY (${liveIds("'CONFIRMED', 'FAILED_FINAL'")})
  ORDER BY r.block_number, r.block_hash`;
