/** One constant SQL statement: its prepared name, its text, and the type of its rows. */
export interface Statement<Row> {
  readonly name: string;
  readonly sql: string;
  /** Never set; carries the row type. */
  readonly row?: Row;
}

export function statement<Row>(name: string, sql: string): Statement<Row> {
  return { name: `fencepost:${name}`, sql };
}

/** A statement together with its parameters: what the planners of a commit produce. */
export interface Command {
  readonly statement: Statement<unknown>;
  readonly values: readonly unknown[];
}
