/**
 * Creates a transaction inside the caller's own database transaction: the intent commits, or rolls back, with the
 * caller's rows.
 */
import type { Intent } from "../../domain/transaction/transaction.ts";
import { parametersOf } from "./rows/columns.ts";
import { DEFAULT_SCHEMA, inSchema } from "./rows/schema-name.ts";
import { intentRow } from "./rows/transaction-fields.ts";
import { insertIntakeRow } from "./statements/intake.ts";

/** The caller's own open database client: that of `pg`, or an object with the same `query` method. */
export interface IntakeClient {
  /** Runs one statement with parameters, in the open transaction. */
  query(text: string, values: unknown[]): Promise<unknown>;
}

/**
 * Inserts an intent with one plain INSERT on the caller's connection: no lock, no setting, and no unique index that a
 * lane's owner also writes. So the caller can keep its transaction open for as long as it likes without delaying other
 * transactions.
 */
export async function insertIntake(client: IntakeClient, intent: Intent, schema = DEFAULT_SCHEMA): Promise<void> {
  const { sql, columns } = insertIntakeRow;
  await client.query(inSchema(sql, schema), parametersOf(columns, intentRow(intent)));
}
