/** Sending inside the caller's own database transaction: the intent commits, or rolls back, with the caller's rows. */
import type { Intent } from "../../domain/transaction.ts";
import { bare, payloadValues } from "./columns.ts";
import { DEFAULT_SCHEMA, inSchema } from "./schema-name.ts";
import { insertIntakeRow } from "./statements/intake.ts";

/** The caller's own open client: `pg`'s, or anything that speaks like it. */
export interface IntakeClient {
  query(text: string, values: unknown[]): Promise<unknown>;
}

/**
 * One plain INSERT on the caller's connection: no lock, no setting, no unique index that a lane's owner writes too. The
 * caller can keep its transaction open for as long as it likes without holding up other transactions.
 */
export async function insertIntake(client: IntakeClient, intent: Intent, schema = DEFAULT_SCHEMA): Promise<void> {
  const payload = payloadValues(intent.payload);
  await client.query(inSchema(insertIntakeRow.sql, schema), [
    intent.txId,
    intent.lane.chainId,
    intent.lane.signer,
    intent.requestId,
    payload.toAddress,
    payload.data,
    payload.value,
    payload.gas ?? null,
    payload.feeType ?? null,
    payload.gasPrice ?? null,
    payload.maxFeePerGas ?? null,
    payload.maxPriorityFeePerGas ?? null,
    payload.accessList === undefined ? null : JSON.stringify(payload.accessList),
    intent.metadata === null ? null : JSON.stringify(intent.metadata),
    bare(intent.fingerprint),
    intent.owner,
    intent.allowNoCode ?? false,
    intent.validUntil?.toISOString() ?? null,
  ]);
}
