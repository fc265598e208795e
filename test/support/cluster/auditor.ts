/**
 * Checks the invariants of a cluster when all work is done: compares the database, the chain and the responses to
 * callers, and evaluates the records made during the test.
 */
import { expect } from "vitest";
import type { CreatedTransaction } from "../../../src/client/index.ts";
import { type Audit, audit, untilSettled } from "../audit.ts";
import { expectKeptCounts } from "../kept-counts.ts";
import { query } from "../query.ts";
import type { Cluster } from "./cluster.ts";
import { terms, violations } from "./tripwires.ts";

const PATIENCE = { giveUpMs: 120_000 };

/**
 * Waits until all work is done. Then checks that no accepted transaction is lost or duplicated, no nonce is missing,
 * and no late write succeeded.
 */
export async function auditCluster(cluster: Cluster, accepted: readonly CreatedTransaction[]): Promise<Audit> {
  const { database, chain, nodes } = cluster;
  const ids = new Set(accepted.map(({ txId }) => txId));
  expect(ids.size, "I5: each answer names a transaction of its own").toBe(accepted.length);
  await untilSettled(database, accepted.length, PATIENCE);
  const witnessed = chain.chain.witness.map(({ hash }) => hash);
  const found = await audit({ database, rpcUrl: chain.url, witnessed });
  checkAnswers(accepted, found);
  expect(await violations(database), "I2: late writes that went through").toEqual([]);
  expect(
    nodes.flatMap(({ chainWire }) => chainWire.violations),
    "I6: sent without a claim",
  ).toEqual([]);
  await checkTerms(cluster);
  await expectKeptCounts({ query: async (sql) => ({ rows: await query(database.url, sql) }) });
  return found;
}

/** Invariant I4: what the responses told callers is true. */
function checkAnswers(accepted: readonly CreatedTransaction[], { stored }: Audit): void {
  const byId = new Map(stored.map((row) => [row.tx_id, row]));
  const changed = accepted.filter(({ txId, nonce, requestId }) => {
    const row = byId.get(txId);
    return row === undefined || row.nonce !== String(nonce) || row.request_id !== requestId;
  });
  expect(changed, "I4: accepted, and lost or changed").toEqual([]);
}

/** Invariant I1: each fencing token has one owner, and tokens only grow. */
async function checkTerms({ database }: Cluster): Promise<void> {
  const last = new Map<string, number>();
  for (const { signer, token } of await terms(database)) {
    expect(token, `the token of ${signer} grows`).toBeGreaterThan(last.get(signer) ?? 0);
    last.set(signer, token);
  }
}
