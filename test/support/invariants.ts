import { expect } from "vitest";
import { SIGNERS, type World } from "./world.ts";

/** Section 2 of the contract, checked at rest against the database and the chain. */
export function checkInvariants(world: World): void {
  const rows = world.rows().filter(({ nonce }) => nonce !== null);
  const { state } = world.database;
  for (const signer of SIGNERS) {
    const nonces = rows.filter(({ lane }) => lane.signer === signer).map(({ nonce }) => nonce as number);
    const first = nonces[0] ?? 0;
    expect(nonces, "I3: consecutive, one transaction each").toEqual(nonces.map((_, index) => first + index));
  }
  const known = new Set(rows.flatMap(({ attempts }) => attempts.map(({ txHash }) => txHash)));
  for (const { hash } of world.chain.witness)
    expect(known, "I6: what was on the wire is in the database").toContain(hash);
  const requestIds = rows.flatMap(({ requestId, lane }) => (requestId === null ? [] : [`${lane.signer} ${requestId}`]));
  expect(new Set(requestIds).size, "I5: one transaction per request id").toBe(requestIds.length);
  for (const row of rows) {
    const mined = row.attempts.filter(({ txHash }) => world.chain.receipt(txHash) !== null);
    expect(mined.length, `I3: ${row.txId} is mined once`).toBe(1);
    expect(row.state, `I4: ${row.txId} is final`).toMatch(/CONFIRMED|FAILED_FINAL/);
    expect(row.receipt?.blockHash).toBe(world.chain.receipt(mined[0]?.txHash as `0x${string}`)?.blockHash);
  }
  expect(
    state.completions.map(({ seq }) => seq),
    "I8: gapless",
  ).toEqual(state.completions.map((_, index) => index + 1));
  for (const row of rows) {
    const said = state.completions.filter(({ txId }) => txId === row.txId).map((completion) => completion.state);
    expect(said.at(-1), `I8: the feed ends with what ${row.txId} is`).toBe(row.state);
    expect(said.filter((_, index) => index % 2 === 1).every((word) => word === "REORGED")).toBe(true);
  }
}
