import { parseTransaction } from "viem/utils";
import { expect } from "vitest";
import type { Hex } from "../../../src/domain/lane.ts";
import { feeCap } from "../../../src/domain/transaction/fees.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { HistoryRecord } from "../../../src/ports/query-store.ts";
import { findTransaction, historyOf } from "../../doubles/memory-store/queries.ts";
import { checkInvariants } from "../invariants.ts";
import { checkRemembered } from "../remembered.ts";
import { SIGNERS } from "../world.ts";
import { FALSE_REFUSAL, FURNACE } from "./callers.ts";
import { WIDEST_JUMP_MS } from "./crew.ts";
import { type Simulation, seenBy } from "./simulate.ts";
import { blobCostOf } from "./spend-kinds.ts";

const UNREADABLE = /policy\.unreadable|cannot be read by this version/;

/** Checks everything that must hold after a simulation, whatever happened in it. */
export function checkSimulation(simulation: Simulation): void {
  const { world, callers, consumer, crew } = simulation;
  const promises =
    "I2: tokens only grow; I3: no lie moves a cursor; nothing is signed above the ceilings, or final too early";
  expect(crew.violations, `${promises}: ${crew.violations.join("; ")}`).toEqual([]);
  const { violations } = simulation.stops;
  expect(violations, `nothing starts after a stop is answered: ${violations.join("; ")}`).toEqual([]);
  const { violations: foreign } = simulation.terms;
  expect(foreign, `I1: nothing is sent after another node has taken the lane: ${foreign.join("; ")}`).toEqual([]);
  expect(crew.keys.violations, `keys: ${crew.keys.violations.join("; ")}`).toEqual([]);
  const delivered = simulation.webhooks?.watch.violations ?? [];
  expect(delivered, `webhooks: ${delivered.join("; ")}`).toEqual([]);
  const signed = simulation.messages?.watch.violations ?? [];
  if (simulation.messages !== null) expect(simulation.clerks.unapproved(), "nothing runs unapproved").toEqual([]);
  expect(signed, `signatures: ${signed.join("; ")}`).toEqual([]);
  const spent = [...(simulation.spenders?.watch.violations ?? []), ...(simulation.spenders?.watch.settled() ?? [])];
  expect(spent, `limits: ${spent.join("; ")}`).toEqual([]);
  const differing = simulation.shadow?.differences() ?? [];
  expect(differing, `the ledger and its naive reference: ${differing.slice(0, 3).join("; ")}`).toEqual([]);
  expect(consumer.violations, "I8: every number once, in order").toEqual([]);
  const { losses } = simulation;
  expect(seenBy(simulation), "I8: the consumer saw what was said").toEqual(world.database.state.completions);
  const absurd = [
    ...callers.absurd,
    ...simulation.reservers.absurd,
    ...simulation.operators.absurd,
    ...simulation.payers.absurd,
    ...simulation.holders.absurd,
    ...simulation.killers.absurd,
    ...simulation.clerks.absurd,
    ...(simulation.webhooks?.subscribers.absurd ?? []),
    ...(simulation.messages?.askers.absurd ?? []),
    ...(simulation.spenders?.absurd ?? []),
    ...(simulation.sticklers?.absurd ?? []),
    ...(simulation.guests?.absurd ?? []),
  ];
  // The spenders put policies into force that no node can read.
  const isOfUnreadable = (answer: string) => simulation.spenders !== null && UNREADABLE.test(answer);
  const unexplained = absurd.filter((answer) => losses?.explains(answer) !== true && !isOfUnreadable(answer));
  expect(unexplained, `answers that no caller should see: ${unexplained.join("; ")}`).toEqual([]);
  checkInvariants(world, (violations) => losses?.unlost(violations) ?? violations);
  checkRemembered(world, losses !== null);
  checkPromises(simulation);
  checkChain(simulation);
  checkActions(simulation);
  checkCosts(simulation);
  checkTimes(simulation);
  checkRefusals(simulation);
}

/**
 * Checks that no accepted request ended because one endpoint said that its signer lacks money, or that it reverts. While
 * the base fee moves, the other endpoint may refuse the request for its price.
 */
function checkRefusals({ world, crew, callers, reservers }: Simulation): void {
  if (crew.counts.has("base fee moved")) return;
  const accepted = new Set(
    [...callers.acknowledged, ...callers.intake, ...reservers.acknowledged].map(({ txId }) => txId),
  );
  const ended = world
    .rows()
    .filter(({ txId, subState, payload }) => subState === "REJECTED" && accepted.has(txId) && payload.to !== FURNACE);
  const reasons = ended.flatMap(({ history }) => history.map(({ reason }) => reason ?? ""));
  const believed = reasons.filter((reason) => FALSE_REFUSAL.test(reason));
  expect(believed, `one liar of two ended an accepted request: ${believed.join("; ")}`).toEqual([]);
}

/**
 * Checks that transactions expired only after their deadline and were never executed, and that no transaction is still
 * on hold.
 */
function checkTimes({ world }: Simulation): void {
  const rows = world.rows();
  const expired = rows.filter(({ subState }) => subState === "EXPIRED");
  // A transaction that nobody approved in time ends as EXPIRED too, without a nonce.
  const unapproved = new Set(expired.filter(({ nonce, history }) => nonce === null && isUnapproved(history)));
  const early = expired.filter(({ validUntil, updatedAt }) => validUntil === null || isBefore(updatedAt, validUntil));
  expect(
    early.filter((row) => !unapproved.has(row)),
    "EXPIRED in its time",
  ).toEqual([]);
  const ran = expired.filter(({ attempts }) =>
    attempts.some(({ txHash, kind }) => kind !== "cancel" && txHash !== null && world.chain.receipt(txHash) !== null),
  );
  expect(ran, "EXPIRED only where the caller's payload was not mined").toEqual([]);
  expect(
    rows.filter(({ heldSince, state }) => heldSince !== null && !isSettled(state)),
    "let go",
  ).toEqual([]);
}

/** True for every setting of the database's clock: a node may have read it before it was set back. */
function isBefore(at: Date, deadline: Date): boolean {
  return at.getTime() + WIDEST_JUMP_MS < deadline.getTime();
}

function isUnapproved(history: readonly HistoryRecord[]): boolean {
  const events = new Set(history.map(({ event }) => event));
  return events.has("await") && !events.has("approve");
}

/**
 * Checks that no attempt exceeds the cost ceilings, whether its price came from a caller or from the market, and even
 * if an endpoint reported false prices. Transactions of other programs are ignored.
 */
function checkCosts({ world }: Simulation): void {
  const { feePerGas, gasCost } = world.ceilings;
  const ours = world
    .rows()
    .flatMap(({ attempts }) => attempts.filter(({ kind, foreign }) => kind !== "external" && !foreign));
  const dear = ours.filter(({ gas, fees, rawTransaction }) => {
    return feeCap(fees) > feePerGas || gas * feeCap(fees) + blobCostIn(rawTransaction) > gasCost;
  });
  expect(dear, "no attempt above the ceilings").toEqual([]);
}

function blobCostIn(rawTransaction: Hex | null): bigint {
  if (rawTransaction === null || !rawTransaction.startsWith("0x03")) return 0n;
  const { maxFeePerBlobGas } = parseTransaction(rawTransaction as `0x03${string}`);
  return blobCostOf({ blobFeeCap: maxFeePerBlobGas ?? 0n });
}

/**
 * Invariants I4 and I5: every request with a 2xx response exists as the response said; no request that was definitely
 * refused exists.
 */
function checkPromises({ world, callers, reservers, losses }: Simulation): void {
  const { state } = world.database;
  const named = new Map<string, string>();
  for (const { txId, nonce, requestId, signer, value } of [...callers.acknowledged, ...reservers.acknowledged]) {
    if (losses?.has(txId) === true) continue;
    const found = findTransaction(state, txId);
    expect(found, `I4: ${txId} was promised`).toMatchObject({ requestId, payload: { value: BigInt(value) } });
    expect(isSettled(found?.state ?? "CREATED"), `I4: ${txId} has an outcome`).toBe(true);
    if (nonce === null) continue;
    expect(mayHave(historyOf(state, txId), nonce, found?.nonce ?? null), `I3: ${txId} keeps its nonce`).toBe(true);
    if (requestId === null) continue;
    const known = named.get(`${signer} ${requestId}`) ?? txId;
    expect(txId, `I5: request ${requestId} has one transaction`).toBe(known);
    named.set(`${signer} ${requestId}`, known);
  }
  for (const { txId } of callers.intake) {
    if (losses?.has(txId) === true) continue;
    expect(isSettled(findTransaction(state, txId)?.state ?? "CREATED"), `I4: intake ${txId} has an outcome`).toBe(true);
  }
  const values = new Set(world.rows().map(({ payload }) => payload.value));
  for (const { value } of callers.refused) expect(values.has(BigInt(value)), `${value} was refused`).toBe(false);
}

/** Checks that every action reported as done to an operator is recorded in the transaction's history. */
function checkActions({ world, operators, losses }: Simulation): void {
  const { state } = world.database;
  const steps = world.rows().flatMap(({ history }) => history.filter(({ decision }) => decision !== null));
  const twice = [...operators.keyed].filter((key) => steps.filter(({ reason }) => reason === key).length > 1);
  if (losses === null) expect(twice, "an action is carried out once under its key").toEqual([]);
  for (const { action, txId, reason } of operators.obeyed) {
    if (losses?.has(txId) === true) continue;
    const history = historyOf(state, txId);
    const steps = history.filter((step) => step.decision?.actor === "operator:sim");
    // A repeated `resolve` gets a response but is not recorded again. So do not check `resolve`.
    if (action === "resolve") continue;
    // A cancel may be reported as done without an entry in the history: a cancel or placeholder that something else
    // caused already replaces the payload.
    const attempts = findTransaction(state, txId)?.attempts ?? [];
    const stands = action === "cancel" && attempts.some(({ kind }) => kind === "cancel" || kind === "placeholder");
    const kept = stands || steps.some((step) => step.reason === reason);
    expect(kept, `${action} of ${txId} was promised to an operator`).toBe(true);
  }
}

/**
 * True if a transaction may have this nonce. It must be the promised nonce, unless the history shows that the
 * transaction moved to a lower nonce or gave its nonce up.
 */
function mayHave(history: readonly HistoryRecord[], promised: number, nonce: number | null): boolean {
  const events = new Set(history.map(({ event }) => event));
  if (nonce === null) return events.has("giveUp") || events.has("expire");
  return nonce === promised || (nonce < promised && events.has("shiftDown"));
}

/**
 * All transactions on the chain are ours, each once, and none is missing. Assigned nonces without a transaction are
 * above all mined ones.
 */
function checkChain({ world, losses }: Simulation): void {
  for (const signer of SIGNERS) {
    const rows = world.rows().filter(({ lane, nonce }) => lane.signer === signer && nonce !== null);
    const elsewhere = world.hiddenNonces(signer);
    const mined = rows.length + elsewhere.length;
    expect(world.chain.account(signer).nonce, `every nonce of ${signer} is mined`).toBe(mined);
    const cursor = [...world.database.state.lanes.values()].find(({ lane }) => lane.signer === signer)?.cursor ?? 0;
    const holes = world.database.state.holes().filter(({ lane }) => lane.signer === signer);
    const unused = holes.filter(({ nonce }) => !elsewhere.includes(nonce));
    // What the database has lost may be mined when nobody asks for nonces any more.
    const unseen = losses === null ? 0 : elsewhere.filter((nonce) => nonce >= cursor).length;
    expect(cursor, `the cursor of ${signer}`).toBe(mined + unused.length - unseen);
    for (const { nonce } of unused) expect(nonce, `a hole of ${signer} below others`).toBeGreaterThanOrEqual(mined);
  }
}
