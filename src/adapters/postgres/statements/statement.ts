/** One constant SQL statement: its prepared name, its text, and the type of its rows. */
export interface Statement<Row> {
  readonly name: string;
  readonly sql: string;
  /** Never set; carries the row type. */
  readonly row?: Row;
}

/** The text with what it shares with others put in. */
type Sql<Row> = (text: TemplateStringsArray, ...shared: readonly (string | number)[]) => Statement<Row>;

export function statement<Row = unknown>(name: string): Sql<Row> {
  return (text, ...shared) => ({ name: `fencepost:${name}`, sql: String.raw({ raw: text }, ...shared).trim() });
}

/** A statement that changes rows. Ends the transaction unless they are as many as this parameter says. */
export function counted(name: string, many: `$${number}` | "1", what: string): Sql<unknown> {
  return (text, ...shared) => statement(name)`
  WITH changed AS (${String.raw({ raw: text }, ...shared)}
    RETURNING 1
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM changed), ${many}, '${what}')`;
}

/** A statement that begins with a list for each of these columns (`lists`), which `rowsOf` makes of rows. */
export function taking<const Columns extends string, Row>(columns: Columns, statement: Statement<Row>) {
  return { ...statement, columns };
}

/** A statement together with its parameters: what the planners of a commit produce. */
export interface Command {
  readonly statement: Statement<unknown>;
  readonly values: readonly unknown[];
}
