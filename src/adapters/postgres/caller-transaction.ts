/**
 * The caller's own open transaction, of any supported library. Recognised by its shape: none of these libraries is
 * imported, and each is called by its one method that takes SQL and parameters.
 *
 * Anything that is recognisably no transaction is refused. A pool, or a library's database object, would commit the
 * intent by itself: a rollback of the caller would leave the payment behind.
 */
import { invalid } from "../../domain/errors.ts";
import type { IntakeClient } from "./insert-intake.ts";

/** `pg`: a client on which BEGIN was said. */
export interface PgClient extends IntakeClient {
  readonly totalCount?: never;
}

/** Drizzle: `db.transaction((tx) => …)`, on any of its PostgreSQL drivers. */
export interface DrizzleTransaction {
  readonly _: { readonly session: { prepareQuery(...asked: never): unknown } };
  rollback(): never;
}

/** Kysely: `db.transaction().execute((trx) => …)`. */
export interface KyselyTransaction {
  readonly isTransaction: true;
  executeQuery(...asked: never): Promise<unknown>;
}

/** Knex: `knex.transaction((trx) => …)`. */
export interface KnexTransaction {
  raw(...asked: never): unknown;
  isCompleted(): boolean;
}

/** postgres.js: `sql.begin((sql) => …)`. */
export interface PostgresJsTransaction {
  unsafe(...asked: never): unknown;
  savepoint(...asked: never): unknown;
}

/** Prisma: `prisma.$transaction((tx) => …)`. */
export interface PrismaTransaction {
  $executeRawUnsafe(...asked: never): unknown;
  readonly $connect?: never;
}

export type CallerTransaction =
  | PgClient
  | DrizzleTransaction
  | KyselyTransaction
  | KnexTransaction
  | PostgresJsTransaction
  | PrismaTransaction;

type Method = (...asked: readonly unknown[]) => unknown;
type Shape = Readonly<Record<string, unknown>>;

interface Library {
  readonly name: string;
  /** How its transactions are begun, for the error message. */
  readonly begin: string;
  /** The method that takes SQL and parameters, by which the library is recognised. */
  readonly method: string;
  isTransaction(client: Shape): boolean;
  /** Arguments for the method. */
  asked(text: string, values: readonly unknown[]): readonly unknown[];
}

/** Drizzle prepares queries in its session, and executes them then. */
const PREPARES = "prepareQuery";

/** In this order: some have methods by which others are recognised, `query` above all. */
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
    // Its placeholders are question marks, in their order; the statement has none of its own.
    asked: (text, values) => {
      const order = [...text.matchAll(/\$(\d+)/g)].map(([, place]) => values[Number(place) - 1]);
      return [text.replace(/\$\d+/g, "?"), order];
    },
  },
  {
    name: "pg",
    begin: "client.query('BEGIN') on a client of its own",
    method: "query",
    // A pool gives each query to any free client.
    isTransaction: (client) => client.totalCount === undefined,
    asked: (text, values) => [text, [...values]],
  },
];

/** Throws INVALID_REQUEST for what is no transaction. Whether a client of `pg` has begun one, only its owner knows. */
export function intakeClientOf(client: CallerTransaction): IntakeClient {
  const shape = client as unknown as Shape;
  const library = isObject(client)
    ? LIBRARIES.find(({ method }) => isMethod(speaker(shape, method)[method]))
    : undefined;
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

/** A query as Kysely's `CompiledQuery.raw` makes it. */
function compiled(text: string, values: readonly unknown[]) {
  const query = { kind: "RawNode", sqlFragments: [text], parameters: [] };
  return { sql: text, parameters: values, query, queryId: { queryId: "fencepost" } };
}

/** The object that has the method. */
function speaker(client: Shape, method: string) {
  const { session } = method === PREPARES && isObject(client._) ? (client._ as Shape) : { session: client };
  return isObject(session) ? (session as Shape) : {};
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function isMethod(value: unknown): value is Method {
  return typeof value === "function";
}
