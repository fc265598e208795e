import { type Behind, rowsOf } from "../rows/columns.ts";

/** An SQL statement together with its parameters. */
export interface Command<Row = unknown> {
  readonly name: string;
  readonly sql: string;
  readonly values: readonly unknown[];
  /** Never set; exists only to carry the row's type for the compiler. */
  readonly row?: Row;
}

/**
 * One constant SQL statement with the name under which it is prepared. Called with parameters, it returns a command.
 */
export interface Statement<Row> {
  (...values: readonly unknown[]): Command<Row>;
  readonly name: string;
  readonly sql: string;
}

/**
 * Like `Statement`, but called with rows: each column becomes one list parameter, and other parameters follow the
 * lists.
 */
export interface RowStatement<Columns extends string, Row> extends Pick<Statement<Row>, "name" | "sql"> {
  <Of extends object>(rows: readonly Of[], ...behind: Behind<Columns, Of>): Command<Row>;
  readonly columns: Columns;
}

/** Template tag for the text of an SQL statement; inserts SQL parts that several statements share. */
type Sql<Of> = (text: TemplateStringsArray, ...shared: readonly (string | number)[]) => Of;

export function statement<Row = unknown>(of: string): Sql<Statement<Row>> {
  const name = `fencepost:${of}`;
  return (text, ...shared) => {
    const sql = String.raw({ raw: text }, ...shared).trim();
    return named(name, { sql }, (...values: readonly unknown[]) => ({ name, sql, values }));
  };
}

/**
 * Makes a statement that changes rows. It ends the transaction unless the number of changed rows equals the number of
 * elements in the first parameter.
 */
export function counted(name: string, what: string, many = "cardinality($1)"): Sql<Statement<unknown>> {
  return (text, ...shared) => statement(name)`
  WITH changed AS (${String.raw({ raw: text }, ...shared)}
    RETURNING 1
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM changed), ${many}, '${what}')`;
}

/** Makes a statement whose first parameters are one list for each of these columns (`lists`). */
export function taking<const Columns extends string>(columns: Columns) {
  return <Row = unknown>(name: string): Sql<RowStatement<Columns, Row>> => of(columns, statement<Row>(name));
}

/** Like `taking`, but ends the transaction unless as many rows were changed as were given. */
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

/** Sets a function's name and members. `defineProperty` is needed, because a function's own name is read-only. */
function named<Call extends object, Members>(name: string, members: Members, call: Call) {
  return Object.assign(Object.defineProperty(call, "name", { value: name }), members);
}
