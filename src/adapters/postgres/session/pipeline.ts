/**
 * Sends several statements with one Sync after them: the server answers them all at once, and if one fails it skips the
 * rest. The driver's own queries each end in a Sync, and each costs one packet in both directions.
 */
import pg from "pg";
import { inSchema } from "../rows/schema-name.ts";

interface Field {
  readonly name: string;
  readonly parse: (value: string) => unknown;
}

/** Named statements of a connection with their columns; null until the server has sent the columns. */
type Known = Map<string, readonly Field[] | null>;

export interface Wording {
  /** Name of the prepared statement; null to send the SQL each time. */
  readonly name: string | null;
  readonly sql: string;
}

/** One statement, and the promise that its caller awaits. */
export interface Step extends Wording {
  readonly values: readonly WireValue[];
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  fields: readonly Field[] | null;
  answer: Answer | null;
}

export interface Answer {
  readonly rows: readonly unknown[];
  /** Command tag that the server returned. */
  readonly tag: string;
}

export interface PipelineOptions {
  readonly schema: string;
  readonly client: pg.PoolClient;
  readonly types: pg.CustomTypesConfig;
  /** Called if it is unknown which statements the server has prepared: the connection must not be used again. */
  readonly onConfused: () => void;
}

/** Makes a step of a pipeline. Throws for values that cannot be encoded. */
export function stepOf(
  { name, sql }: Wording,
  values: readonly unknown[],
  waiting: Pick<Step, "resolve" | "reject">,
): Step {
  return { name, sql, values: values.map(toWire), ...waiting, fields: null, answer: null };
}

/**
 * Converts a column's name from snake_case to the domain's camelCase. Names are converted only here, once per
 * statement.
 */
export function domainName(column: string): string {
  return column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

const knownBy = new WeakMap<pg.Connection, Known>();

/** Several statements as one query to the driver. They resolve when the connection is ready for the next query. */
export class Pipeline extends pg.Query {
  private readonly options: PipelineOptions;
  private readonly steps: readonly Step[];
  private found: unknown[] = [];
  private at = 0;

  constructor(steps: readonly Step[], options: PipelineOptions) {
    super("");
    this.steps = steps;
    this.options = options;
  }

  override submit = (connection: pg.Connection) => {
    const known: Known = knownBy.get(connection) ?? new Map();
    knownBy.set(connection, known);
    for (const step of this.steps) write(step, connection as unknown as Wire, { known, schema: this.options.schema });
    connection.sync();
  };

  handleRowDescription(message: { readonly fields: readonly Pick<pg.FieldDef, "name" | "dataTypeID">[] }): void {
    const { types } = this.options;
    this.step.fields = message.fields.map(({ name, dataTypeID }) => ({
      name: domainName(name),
      parse: types.getTypeParser(dataTypeID, "text") as Field["parse"],
    }));
  }

  handleDataRow({ fields: values }: { readonly fields: readonly (string | null)[] }): void {
    const fields = this.step.fields as readonly Field[];
    const row: Record<string, unknown> = {};
    for (let index = 0; index < fields.length; index++) {
      const { name, parse } = fields[index] as Field;
      const value = values[index] as string | null;
      row[name] = value === null ? null : parse(value);
    }
    this.found.push(row);
  }

  handleCommandComplete({ text }: { readonly text: string }, connection: pg.Connection): void {
    const { step } = this;
    step.answer = { rows: this.found, tag: text };
    if (step.name !== null) knownBy.get(connection)?.set(step.name, step.fields ?? []);
    this.found = [];
    this.at++;
  }

  /** Resolve the statements only when the connection is ready: a result may lead to the next statement. */
  handleReadyForQuery(): void {
    for (const { answer, resolve } of this.steps) resolve(answer as Answer);
  }

  /**
   * Handles an error: the server skips the rest. A transaction that is still open is rolled back before the statements
   * reject.
   */
  handleError(error: unknown, connection: pg.Connection): void {
    const known = knownBy.get(connection);
    const isUnprepared = ({ name }: Step) => name !== null && known?.get(name) === null;
    if (this.steps.slice(this.at).some(isUnprepared)) this.options.onConfused();
    const settle = () => {
      for (const { answer, resolve, reject } of this.steps) {
        if (answer === null) reject(error);
        else resolve(answer);
      }
    };
    this.options.client.query("ROLLBACK").then(settle, settle);
  }

  private get step() {
    return this.steps[this.at] as Step;
  }
}

function write(step: Step, wire: Wire, { known, schema }: { readonly known: Known; readonly schema: string }) {
  const { name, sql, values } = step;
  if (name === null || !known.has(name)) wire.parse({ name: name ?? "", text: inSchema(sql, schema) });
  if (name !== null) {
    step.fields = known.get(name) ?? null;
    known.set(name, step.fields);
  }
  wire.bind({ statement: name ?? "", values });
  if (step.fields === null) wire.describe({ type: "P", name: "" });
  wire.execute(null);
}

type WireValue = string | null;

/** Encodes a parameter: a string, number, boolean or a list of these. Other values must already be JSON text. */
function toWire(value: unknown): WireValue {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return toList(value);
  if (typeof value === "object" || typeof value === "function")
    throw new TypeError("a query parameter must be a string, number, boolean or a list of these");
  return String(value);
}

/**
 * Encodes a list parameter. A commit has thousands of elements, mostly in lists of numbers or of strings that need no
 * escaping, so these have a fast path.
 */
function toList(values: readonly unknown[]): string {
  if (values.every((value) => typeof value === "number" || typeof value === "bigint")) return `{${values.join(",")}}`;
  if (values.every((value) => typeof value === "string" && isPlain(value))) return `{"${values.join('","')}"}`;
  return `{${values.map(toElement).join(",")}}`;
}

function isPlain(text: string) {
  return !text.includes('"') && !text.includes("\\");
}

function toElement(value: unknown): string {
  const text = toWire(value);
  return text === null ? "NULL" : `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** Methods of the driver's connection that are called here. */
interface Wire {
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(values: { readonly statement: string; readonly values: readonly WireValue[] }): void;
  describe(what: { readonly type: "P"; readonly name: string }): void;
  execute(limits: null): void;
}
