/**
 * The caller's own open transaction, in whichever library it was begun. Recognised by its shape: nothing of these libraries
 * is imported, and each is asked by the one method that takes SQL and parameters.
 *
 * What is not a transaction is refused where that can be told. A pool, or a library's database object, would commit the
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
  /** How its transactions are begun, for whoever gave something else. */
  readonly begin: string;
  isOf(client: Shape): boolean;
  isTransaction(client: Shape): boolean;
  query(client: Shape, text: string, values: readonly unknown[]): unknown;
}

/** In this order: some have fields by which others are known, `query` above all. */
const LIBRARIES: readonly Library[] = [
  {
    name: "Prisma",
    begin: "prisma.$transaction(async (tx) => …)",
    isOf: (client) => isMethod(client.$executeRawUnsafe),
    isTransaction: (client) => client.$connect === undefined,
    query: (client, text, values) => call(client, "$executeRawUnsafe", text, ...values),
  },
  {
    name: "Kysely",
    begin: "db.transaction().execute(async (trx) => …)",
    isOf: (client) => isMethod(client.executeQuery),
    isTransaction: (client) => client.isTransaction === true,
    query: (client, text, values) => call(client, "executeQuery", compiled(text, values)),
  },
  {
    name: "Drizzle",
    begin: "db.transaction(async (tx) => …)",
    isOf: (client) => sessionOf(client) !== null,
    isTransaction: (client) => isMethod(client.rollback),
    query: (client, text, values) => {
      const query = call(
        sessionOf(client) ?? {},
        "prepareQuery",
        { sql: text, params: values },
        undefined,
        undefined,
        false,
      );
      return call(query as Shape, "execute");
    },
  },
  {
    name: "postgres.js",
    begin: "sql.begin(async (sql) => …)",
    isOf: (client) => isMethod(client.unsafe),
    isTransaction: (client) => isMethod(client.savepoint),
    query: (client, text, values) => call(client, "unsafe", text, values),
  },
  {
    name: "Knex",
    begin: "knex.transaction(async (trx) => …)",
    isOf: (client) => isMethod(client.raw),
    isTransaction: (client) => client.isTransaction === true,
    // Its placeholders are question marks, in the order in which they stand; the statement has none of its own.
    query: (client, text, values) => {
      const order = [...text.matchAll(/\$(\d+)/g)].map(([, place]) => values[Number(place) - 1]);
      return call(client, "raw", text.replace(/\$\d+/g, "?"), order);
    },
  },
  {
    name: "pg",
    begin: "client.query('BEGIN') on a client of its own",
    isOf: (client) => isMethod(client.query),
    // A pool gives each query to whichever of its clients is free.
    isTransaction: (client) => client.totalCount === undefined,
    query: (client, text, values) => call(client, "query", text, [...values]),
  },
];

/** Throws INVALID_REQUEST for what is no transaction. Whether a client of `pg` has begun one, only its owner knows. */
export function intakeClientOf(client: CallerTransaction): IntakeClient {
  const shape = client as unknown as Shape;
  const library = isObject(client) ? LIBRARIES.find(({ isOf }) => isOf(shape)) : undefined;
  if (library === undefined) {
    const known = LIBRARIES.map(({ name }) => name).join(", ");
    throw invalid("client", `must be an open transaction of one of these: ${known}`);
  }
  const { name, begin, isTransaction, query } = library;
  if (!isTransaction(shape)) {
    throw invalid("client", `is ${name}, but not a transaction: the send would not roll back with yours. Use ${begin}`);
  }
  return { query: async (text, values) => query(shape, text, values) };
}

/** As `CompiledQuery.raw` makes it. */
function compiled(text: string, values: readonly unknown[]) {
  const query = { kind: "RawNode", sqlFragments: [text], parameters: [] };
  return { sql: text, parameters: values, query, queryId: { queryId: "fencepost" } };
}

function sessionOf({ _: own }: Shape): Shape | null {
  const session = isObject(own) ? (own as Shape).session : null;
  return isObject(session) && isMethod((session as Shape).prepareQuery) ? (session as Shape) : null;
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function isMethod(value: unknown): value is Method {
  return typeof value === "function";
}

function call(of: Shape, method: string, ...asked: readonly unknown[]): unknown {
  return (of[method] as Method).apply(of, [...asked]);
}
