import { expect } from "vitest";
import { type Facts, violationsOf } from "../../src/main/dev/chaos/check.ts";
import type { TransactionRow } from "../doubles/memory-store/state.ts";
import type { World } from "./world.ts";

/** Checks the invariants in section 2 of the contract against the database and the chain when all work is done. `relevant` leaves out some. */
export function checkInvariants(world: World, relevant = (violations: readonly string[]) => violations): void {
  expect(world.wire.violations, "I6: stored and claimed before it is sent").toEqual([]);
  const pooled = [...world.database.state.poolChoices.values()].filter(({ requestId }) => requestId !== null);
  const ofPools = pooled.map(({ chainId, pool, requestId }) => `${chainId} ${pool} ${requestId}`);
  expect(new Set(ofPools).size, "I5: one transaction per request id of a pool").toBe(ofPools.length);
  const violations = relevant(violationsOf(factsOf(world)));
  expect(violations, violations.join("; ")).toEqual([]);
}

function factsOf(world: World): Facts {
  return {
    transactions: world.rows().map((row) => ({ ...row, signer: row.lane.signer, attempts: attemptsOf(row) })),
    completions: world.database.state.completions,
    sent: world.chain.witness.map(({ hash }) => hash).filter((hash) => hash === null || !world.hidden.has(hash)),
    elsewhere: (signer) => world.hiddenNonces(signer),
    mined: (hash) => world.chain.receipt(hash),
  };
}

const attemptsOf = ({ attempts }: TransactionRow) =>
  attempts.map(({ txHash: hash, kind, foreign }) => ({ hash, kind, foreign: foreign === true }));
