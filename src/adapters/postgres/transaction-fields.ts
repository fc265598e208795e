/**
 * Each field of a transaction, once: its column, the type of that, and its value. Statements take their lists of columns from
 * here, and rows are read back by the same list. A field that is absent in the domain is null in its column.
 */
import type { Hex } from "../../domain/lane.ts";
import type { Intent, Payload } from "../../domain/transaction.ts";

export type Value = string | number | bigint | boolean | null | undefined;

interface Field<Of> {
  readonly column: string;
  /** As in the table; `gas` is a bigint that is read as a whole number of any size. */
  readonly type: string;
  readonly of: (it: Of) => Value;
  /** In the domain; absent: the column in camel case. */
  readonly name?: string;
  /** Null means absent. */
  readonly optional?: true;
}

export type Fields<Of> = readonly Field<Of>[];

const optional = true;

/** What a transaction says. Also of what is signed in its place. */
export const PAYLOAD: Fields<Payload> = [
  { column: "to_address", type: "text", of: ({ to }) => to, name: "to" },
  { column: "data", type: "bytea", of: ({ data }) => bare(data) },
  { column: "value", type: "numeric", of: ({ value }) => value },
  { column: "gas", type: "gas", of: ({ gas }) => gas, optional },
  { column: "fee_type", type: "text", of: ({ type }) => type, name: "type", optional },
  { column: "gas_price", type: "numeric", of: ({ gasPrice }) => gasPrice, optional },
  { column: "max_fee_per_gas", type: "numeric", of: ({ maxFeePerGas }) => maxFeePerGas, optional },
  { column: "max_priority_fee_per_gas", type: "numeric", of: (payload) => payload.maxPriorityFeePerGas, optional },
  { column: "access_list", type: "jsonb", of: ({ accessList }) => json(accessList), optional },
];

/** Who asks for it, and what stays on the row of the transaction. */
export const ASKED: Fields<Intent> = [
  { column: "tx_id", type: "uuid", of: ({ txId }) => txId },
  { column: "chain_id", type: "bigint", of: ({ lane }) => lane.chainId },
  { column: "signer", type: "text", of: ({ lane }) => lane.signer },
  { column: "request_id", type: "text", of: ({ requestId }) => requestId },
  { column: "owner", type: "text", of: ({ owner }) => owner },
  { column: "valid_until", type: "timestamptz", of: ({ validUntil }) => validUntil?.toISOString(), optional },
];

/** What stays beside its payload. */
export const BESIDE: Fields<Intent> = [
  { column: "metadata", type: "jsonb", of: ({ metadata }) => json(metadata) },
  { column: "fingerprint", type: "bytea", of: ({ fingerprint }) => bare(fingerprint) },
];

/** What matters until it has a nonce. */
const UNTIL_ALLOCATED: Fields<Intent> = [
  { column: "allow_no_code", type: "boolean", of: ({ allowNoCode = false }) => allowNoCode },
];

/** Everything that a transaction's row and its payload's keep of an intent. */
export const KEPT: Fields<Intent> = [...ASKED, ...fieldsOf(PAYLOAD, ({ payload }: Intent) => payload), ...BESIDE];

/** An intent as it waits in the intake table. */
export const INTENT: Fields<Intent> = [...KEPT, ...UNTIL_ALLOCATED];

/** The same fields, of what has one of these. */
export function fieldsOf<Of, Part>(fields: Fields<Part>, part: (it: Of) => Part): Fields<Of> {
  return fields.map(({ of, ...field }) => ({ ...field, of: (it) => of(part(it)) }));
}

/** What is written, in the order of the columns. */
export function valuesIn<Of>(fields: Fields<Of>): readonly ((it: Of) => Value)[] {
  return fields.map(({ of }) => of);
}

/** `tx_id uuid, data bytea`. */
export function columnsIn(fields: Fields<never>): string {
  return fields.map(({ column, type }) => `${column} ${type}`).join(", ");
}

/** Of a table by its alias, under the names of the domain. */
export function selected(table: string, fields: Fields<never>): string {
  return fields
    .map(({ column, type, name = column }) => `${readAs(`${table}.${column}`, type)} AS "${name}"`)
    .join(", ");
}

function readAs(column: string, type: string): string {
  if (type === "bytea") return `'0x' || encode(${column}, 'hex')`;
  return type === "gas" ? `${column}::numeric` : column;
}

/** Parameters of a statement on a connection that is not ours: no name is looked up on its search path. */
export function parametersOf(fields: Fields<never>): string {
  return fields.map(({ type }, at) => PARAMETERS[type]?.(`$${at + 1}`) ?? `$${at + 1}::pg_catalog.${type}`).join(", ");
}

const PARAMETERS: Readonly<Record<string, (place: string) => string>> = {
  bigint: (place) => `${place}::pg_catalog.int8`,
  gas: (place) => `${place}::pg_catalog.int8`,
  boolean: (place) => `${place}::pg_catalog.bool`,
  bytea: (place) => `pg_catalog.decode(${place}::pg_catalog.text, 'hex')`,
  // Some libraries would turn the text of a json parameter into a json string.
  jsonb: (place) => `${place}::pg_catalog.text::pg_catalog.jsonb`,
};

const PAYLOAD_NAMES: ReadonlyMap<string, true | undefined> = new Map(
  PAYLOAD.map(({ column, name = camel(column), optional }) => [name, optional]),
);

/** A row with its payload's columns as the payload that they are. */
export function withPayload<Row extends PayloadColumns>(
  row: Row,
): Omit<Row, keyof Payload> & { readonly payload: Payload } {
  const payload: Record<string, unknown> = {};
  const rest: Record<string, unknown> = { payload };
  for (const [name, value] of Object.entries(row)) {
    if (!PAYLOAD_NAMES.has(name)) rest[name] = value;
    else if (value !== null || PAYLOAD_NAMES.get(name) === undefined) payload[name] = value;
  }
  return rest as unknown as Omit<Row, keyof Payload> & { readonly payload: Payload };
}

/** Each of them a column, null where it is absent. */
type Columns<Of> = { readonly [Key in keyof Of]-?: Exclude<Of[Key], undefined> | null };

export type FeeColumns = Columns<Pick<Payload, "type" | "gasPrice" | "maxFeePerGas" | "maxPriorityFeePerGas">>;
export type PayloadColumns = Columns<Payload> & Pick<Payload, "data" | "value">;

/** The row without those of these members that are null. */
export function withoutNulls<Row extends object, Name extends keyof Row>(row: Row, ...names: readonly Name[]) {
  const known = Object.entries(row).filter(([name, value]) => value !== null || !names.includes(name as Name));
  return Object.fromEntries(known) as Omit<Row, Name> & { readonly [N in Name]?: NonNullable<Row[N]> };
}

function camel(column: string): string {
  return column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Hex travels without its prefix where the column is bytea. */
export function bare(hex: Hex): string {
  return hex.slice(2);
}

export function json(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}
