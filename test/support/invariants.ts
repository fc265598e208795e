import { expect } from "vitest";
import { hashesOf } from "../../src/domain/attempts.ts";
import type { CompletionState } from "../../src/domain/transitions.ts";
import type { TransactionRow } from "../doubles/memory-store/state.ts";
import { SIGNERS, type World } from "./world.ts";

/** Section 2 of the contract, checked at rest against the database and the chain. */
export function checkInvariants(world: World): void {
  const rows = world.rows().filter(({ nonce }) => nonce !== null);
  expect(world.wire.violations, "I6: stored and claimed before it is sent").toEqual([]);
  for (const signer of SIGNERS) {
    const nonces = rows.filter(({ lane }) => lane.signer === signer).map(({ nonce }) => nonce as number);
    const first = nonces[0] ?? 0;
    expect(nonces, "I3: consecutive, one transaction each").toEqual(nonces.map((_, index) => first + index));
  }
  const known = new Set(rows.flatMap(({ attempts }) => attempts.map(({ txHash }) => txHash)));
  const unknown = world.chain.witness.filter(({ hash }) => hash === null || !known.has(hash));
  expect(unknown, "I6: what was on the wire is in the database").toEqual([]);
  const requestIds = rows.flatMap(({ requestId, lane }) => (requestId === null ? [] : [`${lane.signer} ${requestId}`]));
  expect(new Set(requestIds).size, "I5: one transaction per request id").toBe(requestIds.length);
  for (const row of rows) {
    checkOutcome(world, row);
    checkHistory(row);
  }
  checkFeed(world, rows);
}

/** I3, I4: mined once, final, and what the database says of it is what the chain says. */
function checkOutcome(world: World, row: TransactionRow): void {
  const mined = hashesOf(row.attempts).flatMap((txHash) => world.chain.receipt(txHash) ?? []);
  expect(mined.length, `I3: ${row.txId} is mined once`).toBe(1);
  expect(row.state, `I4: ${row.txId} is final`).toMatch(/CONFIRMED|FAILED_FINAL/);
  expect(row.receipt, `I7: ${row.txId} has the receipt of the canonical chain`).toEqual(mined[0]);
  const attempt = row.attempts.find(({ txHash }) => txHash === mined[0]?.txHash);
  const used = attempt?.kind === "cancel" || attempt?.kind === "placeholder";
  const succeeded = mined[0]?.status === "success" && !used;
  expect(row.state === "CONFIRMED", `${row.txId} is what its receipt says`).toBe(succeeded);
  const replaced = succeeded && attempt?.kind === "replace";
  expect(row.subState === "REPLACED", `${row.txId} says whose payload was mined`).toBe(replaced);
  expect(row.subState === "CANCELLED", `${row.txId} says whose payload was mined`).toBe(used);
}

/** I1, I2: terms follow each other, and every move begins where the one before ended. */
function checkHistory({ txId, history, state }: TransactionRow): void {
  const tokens = history.flatMap(({ token }) => (token === null ? [] : [token]));
  expect(tokens, `I2: tokens only grow in the history of ${txId}`).toEqual(tokens.toSorted((a, b) => a - b));
  const path = history.map(({ fromState }) => fromState).slice(1);
  expect(path, `the history of ${txId} has no gap`).toEqual(history.slice(0, -1).map((entry) => entry.state));
  expect(history.at(-1)?.state, `the history of ${txId} ends where it is`).toBe(state);
}

/** I8: gapless; one final word, unless it was taken back; what is not settled is said as such. */
function checkFeed(world: World, rows: readonly TransactionRow[]): void {
  const { completions } = world.database.state;
  const gaps = completions.map(({ seq }, index) => seq - (completions[index - 1]?.seq ?? 0));
  // An epoch that begins because commits may be lost leaves room for a million numbers.
  expect(
    gaps.filter((gap) => gap !== 1 && gap < 1_000_000),
    "I8: gapless within an epoch",
  ).toEqual([]);
  for (const { txId, state } of rows) {
    const said = completions.filter((completion) => completion.txId === txId);
    expect(said.at(-1)?.state, `I8: the feed ends with what ${txId} is`).toBe(state);
    said.forEach((completion, index) => {
      const before = said[index - 1]?.state ?? null;
      expect(MAY_FOLLOW[completion.state], `I8: word ${index} about ${txId}`).toContain(before);
      const isSettled = completion.state === "CONFIRMED" || completion.state === "FAILED_FINAL";
      expect(completion.settled, `I8: word ${index} about ${txId} is settled or not`).toBe(isSettled);
    });
  }
}

const OPEN: readonly (CompletionState | null)[] = [null, "STUCK", "REORGED"];
const MAY_FOLLOW: Readonly<Record<CompletionState, readonly (CompletionState | null)[]>> = {
  CONFIRMED: OPEN,
  FAILED_FINAL: OPEN,
  STUCK: OPEN,
  REORGED: ["CONFIRMED", "FAILED_FINAL"],
};
