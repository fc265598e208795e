/**
 * Adapts the caller's own open database transaction, of any supported library. The library is recognised by the
 * object's shape, not imported, and called by its one method that takes SQL and parameters.
 *
 * An object that is recognisably not a transaction is refused. A pool, or a library's database object, would commit the
 * intent by itself: after a rollback by the caller, the payment would remain.
 */
import { invalid } from "../../domain/errors.ts";
import type { IntakeClient } from "./insert-intake.ts";

/** `pg`: a client on which BEGIN was executed. */
export interface PgClient extends IntakeClient {
  readonly totalCount?: never;
  readonly manager?: never;
}

/** A transaction of Drizzle: `db.transaction((tx) => …)`, on any of its PostgreSQL drivers. */
export interface DrizzleTransaction {
  readonly _: { readonly session: { prepareQuery(...asked: never): unknown } };
  rollback(): never;
}

/** A transaction of Kysely: `db.transaction().execute((trx) => …)`. */
export interface KyselyTransaction {
  readonly isTransaction: true;
  executeQuery(...asked: never): Promise<unknown>;
}

/** A transaction of Knex: `knex.transaction((trx) => …)`. */
export interface KnexTransaction {
  raw(...asked: never): unknown;
  isCompleted(): boolean;
}

/** A transaction of postgres.js: `sql.begin((sql) => …)`. */
export interface PostgresJsTransaction {
  unsafe(...asked: never): unknown;
  savepoint(...asked: never): unknown;
}

/** A transaction of Prisma: `prisma.$transaction((tx) => …)`. */
export interface PrismaTransaction {
  $executeRawUnsafe(...asked: never): unknown;
  readonly $connect?: never;
}

/** A transaction of TypeORM: `dataSource.transaction((manager) => …)`. */
export interface TypeOrmTransaction {
  query(...asked: never): Promise<unknown>;
  getRepository(...asked: never): unknown;
  readonly manager?: never;
}

export type CallerTransaction =
  | PgClient
  | DrizzleTransaction
  | KyselyTransaction
  | KnexTransaction
  | PostgresJsTransaction
  | PrismaTransaction
  | TypeOrmTransaction;

type Method = (...asked: readonly unknown[]) => unknown;
type Shape = Readonly<Record<string, unknown>>;

interface Library {
  readonly name: string;
  /** How a transaction of this library is begun, for the error message. */
  readonly begin: string;
  /** Name of the method that takes SQL and parameters, by which the library is recognised unless `isOf` does so. */
  readonly method: string;
  isOf?(client: Shape): boolean;
  isTransaction(client: Shape): boolean;
  /** Converts SQL and values to the arguments of this library's method. */
  asked(text: string, values: readonly unknown[]): readonly unknown[];
}

/** Drizzle's method that prepares a query in its session; the prepared query is then executed. */
const PREPARES = "prepareQuery";

/** Supported libraries. The order matters: some have methods by which others are recognised, above all `query`. */
const LIBRARIES: readonly Library[] = [
  {
    name: "Prisma",
    begin: "prisma.$transaction(async (tx) => …)",
    method: "$executeRawUnsafe",
    isTransaction: (client) => client.$connect === undefined,
    asked: (text, values) => [text, ...values],
  },
  {
    name: "Kysely",
    begin: "db.transaction().execute(async (trx) => …)",
    method: "executeQuery",
    isTransaction: (client) => client.isTransaction === true,
    asked: (text, values) => [compiled(text, values)],
  },
  {
    name: "Drizzle",
    begin: "db.transaction(async (tx) => …)",
    method: PREPARES,
    isTransaction: (client) => isMethod(client.rollback),
    asked: (text, values) => [{ sql: text, params: values }, undefined, undefined, false],
  },
  {
    name: "postgres.js",
    begin: "sql.begin(async (sql) => …)",
    method: "unsafe",
    isTransaction: (client) => isMethod(client.savepoint),
    asked: (text, values) => [text, values],
  },
  {
    name: "Knex",
    begin: "knex.transaction(async (trx) => …)",
    method: "raw",
    isTransaction: (client) => client.isTransaction === true,
    // Knex uses question marks as placeholders, in order; the statement itself contains no question mark.
    asked: (text, values) => {
      const order = [...text.matchAll(/\$(\d+)/g)].map(([, place]) => values[Number(place) - 1]);
      return [text.replace(/\$\d+/g, "?"), order];
    },
  },
  {
    name: "TypeORM",
    begin: "dataSource.transaction(async (manager) => …)",
    method: "query",
    // Managers and data sources carry a symbol of this name, because TypeORM itself may be installed twice.
    isOf: (client) => typeof client["@instanceof"] === "symbol" || client.isTransactionActive !== undefined,
    isTransaction: (client) => runnerOf(client).isTransactionActive === true,
    asked: (text, values) => [text, [...values]],
  },
  {
    name: "pg",
    begin: "client.query('BEGIN') on a client of its own",
    method: "query",
    // A pool is no transaction, because it runs each query on any free client.
    isTransaction: (client) => client.totalCount === undefined,
    asked: (text, values) => [text, [...values]],
  },
];

/**
 * Adapts a transaction. Throws INVALID_REQUEST for an object that is not a transaction. Whether BEGIN was executed on a
 * client of `pg` cannot be checked here.
 */
export function intakeClientOf(client: CallerTransaction): IntakeClient {
  const shape = client as unknown as Shape;
  const isOf = ({ method, isOf }: Library) => isMethod(speaker(shape, method)[method]) && (isOf?.(shape) ?? true);
  const library = isObject(client) ? LIBRARIES.find(isOf) : undefined;
  if (library === undefined) {
    const known = LIBRARIES.map(({ name }) => name).join(", ");
    throw invalid("client", `must be an open transaction of one of these: ${known}`);
  }
  const { name, begin, method, isTransaction, asked } = library;
  if (!isTransaction(shape)) {
    throw invalid("client", `is ${name}, but not a transaction: the send would not roll back with yours. Use ${begin}`);
  }
  const query = speaker(shape, method);
  return {
    query: async (text, values) => {
      const answer = (query[method] as Method).apply(query, [...asked(text, values)]);
      return method === PREPARES ? (answer as { execute(): unknown }).execute() : answer;
    },
  };
}

/** Builds a query in the form of Kysely's `CompiledQuery.raw`. */
function compiled(text: string, values: readonly unknown[]) {
  const query = { kind: "RawNode", sqlFragments: [text], parameters: [] };
  return { sql: text, parameters: values, query, queryId: { queryId: "fencepost" } };
}

/** Returns the object that has the method: the client itself, or its session. */
function speaker(client: Shape, method: string) {
  const { session } = method === PREPARES && isObject(client._) ? (client._ as Shape) : { session: client };
  return isObject(session) ? (session as Shape) : {};
}

/** Returns TypeORM's query runner: a manager's own one, which only a manager of a transaction has, or the client. */
function runnerOf(client: Shape): Shape {
  return isObject(client.queryRunner) ? (client.queryRunner as Shape) : client;
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function isMethod(value: unknown): value is Method {
  return typeof value === "function";
}
