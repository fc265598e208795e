/**
 * Between the domain's values and columns. Rows come with the names of the domain (session/pipeline.ts), and mostly as the
 * domain has them; a lane, a payload and an owner stand there as their columns. Hex travels without its prefix where the
 * column is bytea. At the end, what statements say about columns.
 */
import type { Fees } from "../../domain/fees.ts";
import type { Hex, Lane } from "../../domain/lane.ts";
import type { Payload } from "../../domain/transaction.ts";
import type { LaneOwner } from "../../ports/lease-store.ts";

/** So far above its nonce a transaction stands while it moves: beyond any nonce there is. */
export const OUT_OF_THE_WAY = 2 ** 52;

/** Each of them a column, null where it is absent. */
type Columns<Of> = { readonly [Key in keyof Of]-?: Exclude<Of[Key], undefined> | null };

export type FeeColumns = Columns<Pick<Payload, "type" | "gasPrice" | "maxFeePerGas" | "maxPriorityFeePerGas">>;
export type PayloadColumns = Columns<Payload> & Pick<Payload, "data" | "value">;
export type OwnerColumns = Columns<LaneOwner>;

/** A record of a lane as it is read. */
export type Flat<Of extends { readonly lane: Lane }> = Omit<Of, "lane"> & Lane;

export function bare(hex: Hex): string {
  return hex.slice(2);
}

export function laneOf({ chainId, signer }: Lane): Lane {
  return { chainId, signer };
}

export function withLane<Row extends Lane>({ chainId, signer, ...row }: Row) {
  return { ...row, lane: { chainId, signer } };
}

export function withOwner<Row extends OwnerColumns>({ instanceId, nodeId, url, expiresAt, ...row }: Row) {
  const owner = instanceId === null ? null : ({ instanceId, nodeId, url, expiresAt } as LaneOwner);
  return { ...row, owner };
}

export function feesOf(row: FeeColumns): Fees {
  const { type, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = row;
  return (type === "eip1559" ? { type, maxFeePerGas, maxPriorityFeePerGas } : { type, gasPrice }) as Fees;
}

export function withPayload<Row extends PayloadColumns>(row: Row) {
  const { to, data, value, gas, type, gasPrice, maxFeePerGas, maxPriorityFeePerGas, accessList, ...rest } = row;
  const payload: Payload = {
    to,
    data,
    value,
    ...(gas === null ? {} : { gas }),
    ...(type === null ? {} : { type }),
    ...(gasPrice === null ? {} : { gasPrice }),
    ...(maxFeePerGas === null ? {} : { maxFeePerGas }),
    ...(maxPriorityFeePerGas === null ? {} : { maxPriorityFeePerGas }),
    ...(accessList === null ? {} : { accessList }),
  };
  return { ...rest, payload };
}

/** Wei as text: JSON numbers are doubles. */
export function payloadValues({ to, data, type, accessList, ...wei }: Payload) {
  return {
    toAddress: to,
    data: bare(data),
    value: wei.value.toString(),
    gas: wei.gas?.toString(),
    accessList,
    feeType: type,
    gasPrice: wei.gasPrice?.toString(),
    maxFeePerGas: wei.maxFeePerGas?.toString(),
    maxPriorityFeePerGas: wei.maxPriorityFeePerGas?.toString(),
  };
}

/** In a list of columns and their types. */
const COLUMN = /(\w+) (\w+)/g;

/**
 * Rows out of one list for each column: `lists("tx_id uuid, nonce bigint")` takes them from $1 and $2. A list that is null
 * is filled up with nulls.
 *
 * Not `FROM unnest($1, $2)`: before it gives the first row of that, the server copies each list to a store of its own, and
 * making those stores is a tenth of what it does for a commit. In a select list they are walked side by side.
 */
export function lists(columns: string): string {
  let place = 0;
  return `SELECT ${columns.replace(COLUMN, (_, name, type) => `unnest($${++place}::${type}[]) AS ${name}`)}`;
}

/** The same columns without their types. */
export function names(columns: string): string {
  return columns.replace(COLUMN, "$1");
}

/** Behind ON CONFLICT: a row that exists gets all of these from the one that was to be inserted. */
export function overwritten(columns: string): string {
  return `DO UPDATE SET ${columns.replace(COLUMN, "$1 = excluded.$1")}`;
}

/** Rows for `json_to_recordset`, which knows each value by the name of its column. */
export function recordset(rows: readonly object[]): string {
  return JSON.stringify(
    rows.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [columnOf(key), value]))),
  );
}

function columnOf(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The payload's columns of a table, as `PayloadColumns`. */
export function payloadOf(table: "p" | "q" | "i"): string {
  return `${table}.to_address AS "to", '0x' || encode(${table}.data, 'hex') AS data, ${table}.value, ${table}.gas::numeric AS gas,
     ${table}.fee_type AS type, ${table}.gas_price, ${table}.max_fee_per_gas, ${table}.max_priority_fee_per_gas, ${table}.access_list`;
}

/** What is live of the lane $1, $2 in one of these states. Collected first, so that other tables are asked by key. */
export function liveIds(states: string): string {
  return `ARRAY(
    SELECT t.tx_id FROM fencepost.transaction AS t
    WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN (${states})
    ORDER BY t.nonce
  )`;
}
