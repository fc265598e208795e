import { type Behind, rowsOf } from "../rows/columns.ts";

/** A statement together with its parameters. */
export interface Command<Row = unknown> {
  readonly name: string;
  readonly sql: string;
  readonly values: readonly unknown[];
  /** Never set; carries the row type. */
  readonly row?: Row;
}

/** One constant SQL statement with its prepared name. Called with its parameters, it returns a command. */
export interface Statement<Row> {
  (...values: readonly unknown[]): Command<Row>;
  readonly name: string;
  readonly sql: string;
}

/** The same, called with rows: each column is one list, and other parameters follow the lists. */
export interface RowStatement<Columns extends string, Row> extends Pick<Statement<Row>, "name" | "sql"> {
  <Of extends object>(rows: readonly Of[], ...behind: Behind<Columns, Of>): Command<Row>;
  readonly columns: Columns;
}

/** The text, with fragments that statements share. */
type Sql<Of> = (text: TemplateStringsArray, ...shared: readonly (string | number)[]) => Of;

export function statement<Row = unknown>(of: string): Sql<Statement<Row>> {
  const name = `fencepost:${of}`;
  return (text, ...shared) => {
    const sql = String.raw({ raw: text }, ...shared).trim();
    return named(name, { sql }, (...values: readonly unknown[]) => ({ name, sql, values }));
  };
}

/** A statement that changes rows. Ends the transaction unless they are as many as the elements of the first parameter. */
export function counted(name: string, what: string, many = "cardinality($1)"): Sql<Statement<unknown>> {
  return (text, ...shared) => statement(name)`
  WITH changed AS (${String.raw({ raw: text }, ...shared)}
    RETURNING 1
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM changed), ${many}, '${what}')`;
}

/** A statement that begins with a list for each of these columns (`lists`). */
export function taking<const Columns extends string>(columns: Columns) {
  return <Row = unknown>(name: string): Sql<RowStatement<Columns, Row>> => of(columns, statement<Row>(name));
}

/** The same, counted. */
export function changing<const Columns extends string>(columns: Columns, ...name: Parameters<typeof counted>) {
  return of(columns, counted(...name));
}

function of<Columns extends string, Row>(columns: Columns, write: Sql<Statement<Row>>) {
  return (...text: Parameters<typeof write>): RowStatement<Columns, Row> => {
    const { name, sql } = write(...text);
    const command = (rows: readonly object[], ...behind: readonly unknown[]) => {
      return { name, sql, values: [...rowsOf(columns, rows), ...behind] };
    };
    return named(name, { sql, columns }, command as never);
  };
}

/** A function's own name is read-only. */
function named<Call extends object, Members>(name: string, members: Members, call: Call) {
  return Object.assign(Object.defineProperty(call, "name", { value: name }), members);
}
