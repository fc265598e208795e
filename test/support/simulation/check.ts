import { expect } from "vitest";
import { isSettled } from "../../../src/domain/transitions.ts";
import { findTransaction } from "../../doubles/memory-store/queries.ts";
import { checkInvariants } from "../invariants.ts";
import { SIGNERS } from "../world.ts";
import type { Simulation } from "./simulate.ts";

/** Everything that must hold after a simulation, whatever happened in it. */
export function checkSimulation(simulation: Simulation): void {
  const { world, callers, consumer, crew } = simulation;
  expect(crew.violations, "I2: tokens only grow").toEqual([]);
  expect(consumer.violations, "I8: every number once, in order").toEqual([]);
  expect(consumer.seen, "I8: the consumer saw what was said").toEqual(world.database.state.completions);
  expect(callers.absurd, "answers that no caller should see").toEqual([]);
  checkInvariants(world);
  checkPromises(simulation);
  checkChain(simulation);
}

/** I4, I5: what was answered 2xx is there, as it was answered; what was refused for sure is not. */
function checkPromises({ world, callers }: Simulation): void {
  const { state } = world.database;
  const named = new Map<string, string>();
  for (const { txId, nonce, requestId, signer, value } of callers.acknowledged) {
    const found = findTransaction(state, txId);
    expect(found, `I4: ${txId} was promised`).toMatchObject({ requestId, payload: { value: BigInt(value) } });
    expect(isSettled(found?.state ?? "CREATED"), `I4: ${txId} has an outcome`).toBe(true);
    if (nonce === null) continue;
    expect(found?.nonce, `I3: ${txId} keeps its nonce`).toBe(nonce);
    if (requestId === null) continue;
    const known = named.get(`${signer} ${requestId}`) ?? txId;
    expect(txId, `I5: request ${requestId} has one transaction`).toBe(known);
    named.set(`${signer} ${requestId}`, known);
  }
  for (const { txId } of callers.intake) {
    expect(isSettled(findTransaction(state, txId)?.state ?? "CREATED"), `I4: intake ${txId} has an outcome`).toBe(true);
  }
  const values = new Set(world.rows().map(({ payload }) => payload.value));
  for (const { value } of callers.refused) expect(values.has(BigInt(value)), `${value} was refused`).toBe(false);
}

/** What is on the chain is ours, once, and all of it. */
function checkChain({ world }: Simulation): void {
  for (const signer of SIGNERS) {
    const rows = world.rows().filter(({ lane, nonce }) => lane.signer === signer && nonce !== null);
    expect(world.chain.account(signer).nonce, `every nonce of ${signer} is mined`).toBe(rows.length);
    const cursor = [...world.database.state.lanes.values()].find(({ lane }) => lane.signer === signer)?.cursor ?? 0;
    expect(cursor, `the cursor of ${signer}`).toBe(rows.length);
  }
}
