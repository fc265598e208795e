import type pg from "pg";
import { createUuidSequence } from "../../src/adapters/system/entropy.ts";
import type { Fence, Lane } from "../../src/domain/lane.ts";
import type { PreparedIntent } from "../../src/domain/transaction/transaction.ts";
import type { LaneStore } from "../../src/ports/lane-store.ts";
import { AT, anIntent, apply, commitOne, type IntentWishes, mine, step } from "./lane-samples.ts";

export const DAY_MS = 86_400_000;
/** Age of old transactions in days. */
export const OLD_DAYS = 100;

const oldUuid = createUuidSequence(
  () => Date.now() - OLD_DAYS * DAY_MS,
  (bytes) => crypto.getRandomValues(bytes),
);

/** An intent whose id contains a creation time long ago. */
export function anOldIntent(lane: Lane, wishes: IntentWishes = {}): PreparedIntent {
  return { ...anIntent(lane, wishes), txId: oldUuid() };
}

/**
 * A confirmed transaction that is no longer watched for a reorg. Its id contains a creation time long ago; the times in
 * its rows are still recent.
 */
export async function anOldTransaction(
  store: Pick<LaneStore, "commit">,
  fence: Fence,
  intent: PreparedIntent = anOldIntent(fence.lane),
): Promise<PreparedIntent> {
  await confirmOld(store, fence, intent);
  await commitOne(store, { kind: "unwatch", fence, throughBlock: 100 });
  return intent;
}

/** An old transaction that is confirmed and still watched for a reorg. */
export async function confirmOld(
  store: Pick<LaneStore, "commit">,
  fence: Fence,
  intent: PreparedIntent,
): Promise<PreparedIntent> {
  const { attempt } = await mine(store, fence, {}, intent);
  const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: attempt.txHash } as const;
  await apply(store, fence, [step(intent.txId, AT.mined, "confirm", { completion })]);
  return intent;
}

/** Moves all timestamps in the database `days` days into the past. */
export async function letDaysPass(client: pg.Client, days: number): Promise<void> {
  const ago = `- interval '${days} days'`;
  await client.query(`UPDATE fencepost.transaction SET updated_at = updated_at ${ago}, created_at = created_at ${ago}`);
  await client.query(`UPDATE fencepost.completion SET at = at ${ago}`);
}

const NAMED = ["transaction", "payload", "attempt", "receipt", "step", "completion", "pool_choice", "charge"];

/**
 * Makes final transactions of a node look old. They get ids with an old creation time and old timestamps. They are also
 * marked as no longer watched for a reorg, which a node would do only later.
 */
export async function makeOld(query: (sql: string) => Promise<unknown>): Promise<void> {
  const then = Math.floor(Date.now() - OLD_DAYS * DAY_MS)
    .toString(16)
    .padStart(12, "0");
  const id = `('${then.slice(0, 8)}-${then.slice(8)}' || substr(tx_id::text, 14))::uuid`;
  const ago = `- interval '${OLD_DAYS} days'`;
  const tables = NAMED.map((table) => `UPDATE fencepost.${table} SET tx_id = ${id};`);
  // Change everything in one transaction, so that a node that reads at the same time sees either the old or the new
  // rows.
  await query(`BEGIN; ${tables.join(" ")}
    UPDATE fencepost.transaction SET live = false, outcome = state WHERE live AND state IN ('CONFIRMED', 'FAILED_FINAL');
    UPDATE fencepost.transaction SET updated_at = updated_at ${ago}, created_at = created_at ${ago};
    UPDATE fencepost.completion SET at = at ${ago}; COMMIT`);
}
