/** Sending inside the caller's own database transaction: the intent commits, or rolls back, with the caller's rows. */
import type { Intent } from "../../domain/transaction.ts";
import { parametersOf } from "./columns.ts";
import { DEFAULT_SCHEMA, inSchema } from "./schema-name.ts";
import { insertIntakeRow } from "./statements/intake.ts";
import { intentRow } from "./transaction-fields.ts";

/** The caller's own open client: `pg`'s, or anything that speaks like it. */
export interface IntakeClient {
  query(text: string, values: unknown[]): Promise<unknown>;
}

/**
 * One plain INSERT on the caller's connection: no lock, no setting, no unique index that a lane's owner writes too. The
 * caller can keep its transaction open for as long as it likes without holding up other transactions.
 */
export async function insertIntake(client: IntakeClient, intent: Intent, schema = DEFAULT_SCHEMA): Promise<void> {
  const { sql, columns } = insertIntakeRow;
  await client.query(inSchema(sql, schema), parametersOf(columns, intentRow(intent)));
}
