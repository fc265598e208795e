/**
 * Statements with one Sync behind them: the server answers them all at once, and if one fails it does none of the
 * others. The driver's own queries each end in a Sync, and cost a packet either way.
 */
import pg from "pg";
import { inSchema } from "../rows/schema-name.ts";

interface Field {
  readonly name: string;
  readonly parse: (value: string) => unknown;
}

/** A connection's knowledge of its named statements: their columns, null before the server has sent them. */
type Known = Map<string, readonly Field[] | null>;

export interface Wording {
  /** Null: sent as it is each time. */
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
  /** The server's command tag. */
  readonly tag: string;
}

export interface PipelineOptions {
  readonly schema: string;
  readonly client: pg.PoolClient;
  readonly types: pg.CustomTypesConfig;
  /** It is not known which statements the server has names for: the connection must not be used again. */
  readonly onConfused: () => void;
}

/** Throws for what cannot be written. */
export function stepOf(
  { name, sql }: Wording,
  values: readonly unknown[],
  waiting: Pick<Step, "resolve" | "reject">,
): Step {
  return { name, sql, values: values.map(toWire), ...waiting, fields: null, answer: null };
}

/** Columns are snake_case, the domain is camelCase: converted here, once for each statement, and nowhere else. */
export function domainName(column: string): string {
  return column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

const knownBy = new WeakMap<pg.Connection, Known>();

/** One query to the driver. Its statements resolve when the connection is ready for the next query. */
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

  /** Only now: an answer may lead to the next statement, and the connection must be ready for it. */
  handleReadyForQuery(): void {
    for (const { answer, resolve } of this.steps) resolve(answer as Answer);
  }

  /** The server skips the rest. A transaction that is still open there is ended before the statements reject. */
  handleError(error: unknown, connection: pg.Connection): void {
    const known = knownBy.get(connection);
    const isUnheardOf = ({ name }: Step) => name !== null && known?.get(name) === null;
    if (this.steps.slice(this.at).some(isUnheardOf)) this.options.onConfused();
    const tell = () => {
      for (const { answer, resolve, reject } of this.steps) {
        if (answer === null) reject(error);
        else resolve(answer);
      }
    };
    this.options.client.query("ROLLBACK").then(tell, tell);
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

/** Parameters are words, numbers, truths and lists of these; everything else travels as JSON, which is a word. */
function toWire(value: unknown): WireValue {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return toList(value);
  if (typeof value === "object" || typeof value === "function") throw new TypeError("a parameter is not a plain value");
  return String(value);
}

/** A commit has thousands of elements, most of them in lists of numbers or of words with nothing to escape. */
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

/** The driver's connection, as it is really called. */
interface Wire {
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(values: { readonly statement: string; readonly values: readonly WireValue[] }): void;
  describe(what: { readonly type: "P"; readonly name: string }): void;
  execute(limits: null): void;
}
