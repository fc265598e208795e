/**
 * Between the domain's values and columns. Rows come with the names of the domain (session/pipeline.ts), and mostly as the
 * domain has them; a lane and an owner are flat there. At the end, what statements say about lists of columns.
 */
import type { Fees } from "../../domain/fees.ts";
import type { Lane } from "../../domain/lane.ts";
import type { LaneOwner } from "../../ports/lease-store.ts";
import type { FeeColumns } from "./transaction-fields.ts";

/** So far above its nonce a transaction stands while it moves: beyond any nonce there is. */
export const OUT_OF_THE_WAY = 2 ** 52;

export type OwnerColumns = { readonly [Key in keyof LaneOwner]: LaneOwner[Key] | null };

/** A record of a lane as it is read. */
export type Flat<Of extends { readonly lane: Lane }> = Omit<Of, "lane"> & Lane;

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

/** In a list of columns and their types. */
const COLUMN = /(\w+) (\w+)/g;

/** How a column's value travels: hex as text, gas as the bigint that it is. */
const SENT_AS: Readonly<Record<string, string>> = { bytea: "text", gas: "bigint" };

/**
 * Rows out of one list for each column: `lists("tx_id uuid, nonce bigint")` takes them from $1 and $2. A list that is null
 * is filled up with nulls.
 *
 * Not `FROM unnest($1, $2)`: before it gives the first row of that, the server copies each list to a store of its own, and
 * making those stores is a tenth of what it does for a commit. In a select list they are walked side by side.
 */
export function lists(columns: string): string {
  let place = 0;
  const unnested = (_: string, name: string, type: string) =>
    `unnest($${++place}::${SENT_AS[type] ?? type}[]) AS ${name}`;
  return `SELECT ${columns.replace(COLUMN, unnested)}`;
}

/** The same columns without their types. */
export function names(columns: string): string {
  return columns.replace(COLUMN, "$1");
}

/** The same columns of such rows, as the table has them. */
export function stored(columns: string): string {
  return columns.replace(COLUMN, (_, name, type) => (type === "bytea" ? `decode(${name}, 'hex')` : name));
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

/** What is live of the lane $1, $2 in one of these states. Collected first, so that other tables are asked by key. */
export function liveIds(states: string): string {
  return `ARRAY(
    SELECT t.tx_id FROM fencepost.transaction AS t
    WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN (${states})
    ORDER BY t.nonce
  )`;
}
