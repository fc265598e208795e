/**
 * Converts between the domain's values and columns. Rows are read under the domain's names (session/pipeline.ts),
 * mostly with the domain's types; lane and owner are flat columns there. The second part builds SQL from lists of
 * columns.
 */

import type { Hex, Lane } from "../../../domain/lane.ts";
import type { Fees } from "../../../domain/transaction/fees.ts";
import type { LaneOwner } from "../../../ports/lease-store.ts";
import type { FeeColumns } from "./transaction-fields.ts";

/**
 * While a transaction moves to another nonce, this offset is added to its stored nonce, which frees the nonce. The sum
 * is larger than any real nonce.
 */
export const OUT_OF_THE_WAY = 2 ** 52;

export type OwnerColumns = { readonly [Key in keyof LaneOwner]: LaneOwner[Key] | null };

/**
 * A record as it is read from the database: chain id and signer, which the domain groups as `lane`, are members of the
 * record itself.
 */
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

export const LANE = "chain_id bigint, signer text";

/** Matches one column and its type in a list of columns. */
const COLUMN = /(\w+) (\w+)/g;

/** Types as which column values are sent: hex as text, gas as bigint. */
const SENT_AS: Readonly<Record<string, string>> = { bytea: "text", gas: "bigint" };

/** Columns whose name differs in the domain; all others have the same name there, in camel case. */
const RENAMED = { to_address: "to", fee_type: "type" } as const;

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;
type NameOf<Column extends string> = Column extends ` ${infer Rest}` | `\n${infer Rest}`
  ? NameOf<Rest>
  : Column extends `${infer Name} ${string}`
    ? Name extends keyof typeof RENAMED
      ? (typeof RENAMED)[Name]
      : Camel<Name>
    : never;

/** The domain's names of the columns in a list. */
export type NamesIn<Columns extends string> = Columns extends `${infer First},${infer Rest}`
  ? NameOf<First> | NamesIn<Rest>
  : NameOf<Columns>;

function nameOf(column: string) {
  const renamed: Readonly<Record<string, string>> = RENAMED;
  return renamed[column] ?? column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * SQL that makes rows from one list parameter per column: `lists("tx_id uuid, nonce bigint")` reads them from $1 and
 * $2. A list that is null is filled up with nulls.
 *
 * It does not use `FROM unnest($1, $2)`: the server copies each list to a tuple store before it returns the first row,
 * which is a tenth of its work for a commit. In a select list the lists are read side by side.
 *
 * It does not use one JSON text either: parsing that is a third of the server's work for such small rows, and an empty
 * column costs nothing here.
 */
export function lists(columns: string): string {
  let place = 0;
  const unnested = (_: string, name: string, type: string) =>
    `unnest($${++place}::${SENT_AS[type] ?? type}[]) AS ${name}`;
  return `SELECT ${columns.replace(COLUMN, unnested)}`;
}

/**
 * Parameter values for `lists`: one list per column, read from the rows by the domain's names; null for a column
 * without a value in any row.
 */
export function rowsOf(columns: string, rows: readonly object[]): readonly unknown[] {
  return readersOf(columns).map((read) => {
    const values = rows.map(read as (row: object) => unknown);
    return values.some((value) => value !== null && value !== undefined) ? values : null;
  });
}

/** Placeholder (`$n`) of a parameter after the list parameters of `lists`. */
export function behind(columns: string, place = 1): `$${number}` {
  return `$${[...columns.matchAll(COLUMN)].length + place}`;
}

/** Type of the parameters after the lists. It makes the compiler refuse rows that lack a column. */
export type Behind<Columns extends string, Row> = [NamesIn<Columns>] extends [keyof Row]
  ? readonly unknown[]
  : readonly [missing: never, ...never[]];

type Read = (row: Readonly<Record<string, unknown>>) => unknown;

const readers = new Map<string, readonly Read[]>();

function readersOf(columns: string): readonly Read[] {
  const known =
    readers.get(columns) ?? [...columns.matchAll(COLUMN)].map(([, name = "", type = ""]) => readerOf(name, type));
  readers.set(columns, known);
  return known;
}

function readerOf(column: string, type: string): Read {
  const name = nameOf(column);
  const write = WRITTEN_AS[type];
  return write === undefined
    ? (row) => row[name]
    : (row) => (row[name] === null || row[name] === undefined ? null : write(row[name]));
}

/** Conversions for column types whose values cannot be sent unchanged. */
const WRITTEN_AS: Readonly<Record<string, (value: unknown) => unknown>> = {
  bytea: (hex) => bare(hex as Hex),
  jsonb: (value) => JSON.stringify(value),
  timestamptz: (at) => (at instanceof Date ? at.toISOString() : at),
};

/** Removes the 0x of a hex text, as PostgreSQL's decode(…, 'hex') requires. */
export function bare(hex: Hex): string {
  return hex.slice(2);
}

/** Names of the columns, without their types. */
export function names(columns: string): string {
  return columns.replace(COLUMN, "$1");
}

/** Select list of the columns as the table stores them: hex text is decoded to bytea. */
export function stored(columns: string): string {
  return columns.replace(COLUMN, (_, name, type) => (type === "bytea" ? `decode(${name}, 'hex')` : name));
}

/** Select list of the columns as read from a table, under the domain's names. */
export function selected(table: string, columns: string): string {
  return columns.replace(
    COLUMN,
    (_, name, type) => `${readAs(`${table}.${name}`, type)} AS "${RENAMED[name as never] ?? name}"`,
  );
}

function readAs(column: string, type: string) {
  if (type === "bytea") return `'0x' || encode(${column}, 'hex')`;
  return type === "gas" ? `${column}::numeric` : column;
}

/**
 * SQL parameters for one row of these columns, for use on the caller's connection. All names are qualified, because the
 * connection's search path may be anything.
 */
export function parameters(columns: string): string {
  let place = 0;
  return columns.replace(COLUMN, (_, _name, type) => asParameter(`$${++place}::pg_catalog.`, type));
}

function asParameter(cast: string, type: string) {
  if (type === "bytea") return `pg_catalog.decode(${cast}text, 'hex')`;
  // Send JSON as text and cast it: some libraries would turn the text of a json parameter into a json string.
  if (type === "jsonb") return `${cast}text::pg_catalog.jsonb`;
  return `${cast}${{ bigint: "int8", gas: "int8", boolean: "bool" }[type] ?? type}`;
}

/** Values for `parameters`. Bigints are sent as text, because not every library supports them. */
export function parametersOf(columns: string, row: Readonly<Record<string, unknown>>): unknown[] {
  return readersOf(columns).map((read) => {
    const value = read(row);
    return typeof value === "bigint" ? value.toString() : (value ?? null);
  });
}

/** The part after ON CONFLICT that overwrites all these columns of an existing row. */
export function overwritten(columns: string): string {
  return `DO UPDATE SET ${columns.replace(COLUMN, "$1 = excluded.$1")}`;
}

/**
 * SQL: ids of the live transactions of the lane $1, $2 in one of these states. They are collected first, so that other
 * tables are read by key.
 */
export function liveIds(states: string): string {
  return `ARRAY(
    SELECT t.tx_id FROM fencepost.transaction AS t
    WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN (${states})
    ORDER BY t.nonce
  )`;
}

/**
 * SQL: joins the lanes $1, $2 with rows `l`. The extra conditions make the planner find the rows by key, even if it is
 * wrong about the table's size.
 */
export const ASKED_LANES = `(${lists(LANE)}) AS k ON l.chain_id = k.chain_id AND l.signer = k.signer
    AND l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])`;

/** SQL: sums of the transaction counts that lanes `l` keep, by state. */
export const LANE_TOTALS = `coalesce(sum(l.live_allocated), 0)::bigint AS "ALLOCATED",
    coalesce(sum(l.live_tracking), 0)::bigint AS "TRACKING", coalesce(sum(l.live_stuck), 0)::bigint AS "STUCK",
    coalesce(sum(l.confirmed_total), 0)::bigint AS "CONFIRMED", coalesce(sum(l.failed_total), 0)::bigint AS "FAILED_FINAL"`;
