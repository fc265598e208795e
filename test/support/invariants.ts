import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import { hashesOf } from "../../src/domain/transaction/attempts.ts";
import { type CompletionState, isSettled } from "../../src/domain/transaction/transitions.ts";
import type { TransactionRow } from "../doubles/memory-store/state.ts";
import { SIGNERS, type World } from "./world.ts";

/** Checks the invariants in section 2 of the contract against the database and the chain when all work is done. */
export function checkInvariants(world: World): void {
  const rows = world.rows().filter(({ nonce }) => nonce !== null);
  expect(world.wire.violations, "I6: stored and claimed before it is sent").toEqual([]);
  for (const signer of SIGNERS) {
    const own = rows.filter(({ lane }) => lane.signer === signer).map(({ nonce }) => nonce as number);
    const nonces = [...own, ...world.hiddenNonces(signer)].sort((a, b) => a - b);
    const first = nonces[0] ?? 0;
    expect(nonces, "I3: consecutive, one transaction each").toEqual(nonces.map((_, index) => first + index));
  }
  const known = new Set(rows.flatMap(({ attempts }) => attempts.map(({ txHash }) => txHash)));
  const unknown = world.chain.witness.filter(
    ({ hash }) => hash === null || !(known.has(hash) || world.hidden.has(hash)),
  );
  expect(unknown, "I6: what was on the wire is in the database").toEqual([]);
  const requestIds = rows.flatMap(({ requestId, lane }) => (requestId === null ? [] : [`${lane.signer} ${requestId}`]));
  expect(new Set(requestIds).size, "I5: one transaction per request id").toBe(requestIds.length);
  const pooled = [...world.database.state.poolChoices.values()].filter(({ requestId }) => requestId !== null);
  const ofPools = pooled.map(({ chainId, pool, requestId }) => `${chainId} ${pool} ${requestId}`);
  expect(new Set(ofPools).size, "I5: one transaction per request id of a pool").toBe(ofPools.length);
  // Report all problems by one assertion: an assertion for each fact of thousands of rows would take longer than the
  // test itself.
  const troubles = rows.flatMap((row) => [...outcomeTroubles(world, row), ...historyTroubles(row)]);
  expect(troubles, troubles.join("; ")).toEqual([]);
  checkFeed(world, rows);
}

/** Names of the checked facts that are false. */
function broken(facts: Readonly<Record<string, boolean>>): readonly string[] {
  return Object.keys(facts).filter((fact) => facts[fact] !== true);
}

/** Invariants I3 and I4: the transaction is mined once and final, and the database agrees with the chain. */
function outcomeTroubles(world: World, row: TransactionRow): readonly string[] {
  const mined = hashesOf(row.attempts).flatMap((txHash) => world.chain.receipt(txHash) ?? []);
  const attempt = row.attempts.find(({ txHash }) => txHash === mined[0]?.txHash);
  const used = attempt?.kind === "cancel" || attempt?.kind === "placeholder";
  const succeeded = mined[0]?.status === "success" && !used && attempt?.foreign !== true;
  const replaced = succeeded && attempt?.kind === "replace";
  return broken({
    [`I3: ${row.txId} is mined once, not ${mined.length} times`]: mined.length === 1,
    [`I4: ${row.txId} is final, not ${row.state}`]: isSettled(row.state),
    [`I7: ${row.txId} has the receipt of the canonical chain`]: isDeepStrictEqual(row.receipt, mined[0]),
    [`${row.txId} is what its receipt says, not ${row.state}`]: (row.state === "CONFIRMED") === succeeded,
    [`${row.txId} says whose payload was mined, not ${row.subState}`]:
      (row.subState === "REPLACED") === replaced &&
      (row.subState === "CANCELLED" || row.subState === "EXPIRED") === used,
    [`${row.txId} is EXPIRED by its caller's word, in its time, and by nobody else's`]:
      (row.subState === "EXPIRED") === (used && row.expiredAt !== null) &&
      (row.expiredAt === null || (row.validUntil !== null && row.validUntil <= row.expiredAt)),
  });
}

/**
 * Invariants I1 and I2: fencing tokens only grow, and each state change begins in the state in which the previous one
 * ended.
 */
function historyTroubles({ txId, history, state }: TransactionRow): readonly string[] {
  const tokens = history.flatMap(({ token }) => (token === null ? [] : [token]));
  return broken({
    [`I2: tokens only grow in the history of ${txId}: ${tokens}`]: tokens.every(
      (token, index) => token >= (tokens[index - 1] ?? 0),
    ),
    [`the history of ${txId} has no gap`]: history.every(
      ({ fromState }, index) => index === 0 || fromState === history[index - 1]?.state,
    ),
    [`the history of ${txId} ends where it is, at ${state}`]: history.at(-1)?.state === state,
  });
}

/**
 * Invariant I8: the feed has no gap. A transaction has one final completion, unless a reorg withdrew it. Completions
 * that may still change are marked as unsettled.
 */
function checkFeed(world: World, rows: readonly TransactionRow[]): void {
  const { completions } = world.database.state;
  const gaps = completions.map(({ seq }, index) => seq - (completions[index - 1]?.seq ?? 0));
  // A new epoch that begins because commits may be lost skips a million numbers.
  expect(
    gaps.filter((gap) => gap !== 1 && gap < 1_000_000),
    "I8: gapless within an epoch",
  ).toEqual([]);
  const troubles: string[] = [];
  const words = new Map<string, (typeof completions)[number][]>(rows.map(({ txId }) => [txId, []]));
  for (const completion of completions) words.get(completion.txId)?.push(completion);
  for (const { txId, state } of rows) {
    const said = words.get(txId) ?? [];
    troubles.push(...broken({ [`I8: the feed ends with what ${txId} is, ${state}`]: said.at(-1)?.state === state }));
    said.forEach((completion, index) => {
      const before = said[index - 1]?.state ?? null;
      const word = `I8: word ${index} about ${txId}, ${completion.state} after ${before}`;
      troubles.push(
        ...broken({
          [`${word}, may follow`]: MAY_FOLLOW[completion.state].includes(before),
          [`${word}, is settled or not`]:
            completion.settled === (completion.state !== "REORGED" && isSettled(completion.state)),
        }),
      );
    });
  }
  expect(troubles, troubles.join("; ")).toEqual([]);
}

const OPEN: readonly (CompletionState | null)[] = [null, "STUCK", "REORGED"];
const MAY_FOLLOW: Readonly<Record<CompletionState, readonly (CompletionState | null)[]>> = {
  CONFIRMED: OPEN,
  FAILED_FINAL: OPEN,
  STUCK: OPEN,
  REORGED: ["CONFIRMED", "FAILED_FINAL"],
};
