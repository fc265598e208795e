/**
 * Beside stage 6: a transaction whose nonce another program used gets another one, where the settings say so and nothing
 * of it can run twice: the foreign transaction is past `finalized` (2N blocks where no endpoint knows that tag), says
 * something else than every payload of ours, the key is signed here, and the database has not lost commits since the
 * nonce was given.
 *
 * Reads: the foreign transaction's contents, our own bytes. Writes: ALLOCATED at a new nonce, under the lane's lock;
 * the old attempts stay. Invariant I3, its third exception. A crash before the commit leaves TRACKING/MINED, decided
 * again; after it, an ALLOCATED row that the owner signs in its turn.
 */
import type { Lane } from "../../../domain/lane.ts";
import { moveJudged } from "../../../domain/pace/transaction-pace.ts";
import type { Attempt, Receipt } from "../../../domain/transaction.ts";
import { type ChainTransaction, unlessSilent } from "../../../ports/chain.ts";
import type { Signer } from "../../../ports/signer.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { commitPlanned, type LaneWriterPorts, type Planned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane, Tracked } from "../../lane/owned-lane.ts";
import { happened, rebuildable, type StoredBytes } from "../../lane/tracked.ts";

export interface RequeuePorts extends LaneWriterPorts, StoredBytes {
  readonly signer: Pick<Signer, "custody">;
}

/** Takes those that get another nonce, now or once the foreign transaction is deeper, and returns the others. */
export async function requeueLost(
  ports: RequeuePorts,
  context: ChainContext,
  lane: OwnedLane,
  decided: readonly Tracked[],
): Promise<readonly Tracked[]> {
  if (context.settings.externalUsePolicy !== "requeue" || !decided.some(isLost)) return decided;
  const deepEnough = await lane.term.during(unlessSilent(finalizedDepth(context), -1));
  const others: Tracked[] = [];
  const planned: Planned[] = [];
  for (const tx of decided) {
    const mayMove = isLost(tx) && (await lane.term.during(mayGetAnother(ports, context, lane, tx)));
    if (mayMove === false) others.push(tx);
    else if (mayMove && (tx.receipt?.blockNumber ?? Number.POSITIVE_INFINITY) <= deepEnough)
      planned.push(move(lane, tx));
  }
  if (planned.length > 0) await commitMoves(ports, lane, planned);
  return others;
}

function isLost({ attempts, receipt }: Tracked): boolean {
  return attempts.some(({ foreign, txHash }) => foreign === true && txHash === receipt?.txHash);
}

/** The highest block from which nothing comes back, by no one endpoint's word or denial; −1 while that is not known. */
async function finalizedDepth({ chain, settings, follower: { window } }: ChainContext): Promise<number> {
  const tagged = await chain.headForAll("finalized");
  if (tagged !== null) return window.mayStandOn(tagged) ? tagged.number : -1;
  return (await chain.heightReached(window.tip?.number ?? -1)) - 2 * settings.confirmations;
}

/** Looked into once, as long as the same foreign transaction stands there. Null: cannot be told now. */
async function mayGetAnother(
  ports: RequeuePorts,
  context: ChainContext,
  { lane, epochFloor }: OwnedLane,
  tx: Tracked,
): Promise<boolean | null> {
  if (tx.pace.mayMove !== null) return tx.pace.mayMove;
  const ours = tx.attempts.filter(({ foreign }) => foreign !== true);
  const sameHistory = tx.nonce >= epochFloor;
  const signedHere = ports.signer.custody(lane.signer) === "local" && ours.every(({ kind }) => kind !== "external");
  // Nobody wants it any more: another nonce would only be used up for nothing.
  if (!sameHistory || !signedHere || tx.expired) return remember(tx, false);
  const foreign = await unlessSilent(contentsOf(context, lane, tx.receipt), null);
  return foreign === null ? null : remember(tx, await differs(ports, tx, ours, foreign));
}

function remember(tx: Tracked, verdict: boolean): boolean {
  happened(tx, moveJudged, verdict);
  return verdict;
}

async function contentsOf(
  { chain }: ChainContext,
  { signer }: Lane,
  receipt: Receipt | null,
): Promise<ChainTransaction | null> {
  if (receipt === null) return null;
  const sent = await chain.sentInBlock(signer, receipt.blockNumber);
  return sent?.find(({ txHash }) => txHash === receipt.txHash) ?? null;
}

/**
 * Somebody who sent the very same has done what the transaction was for: once more would be twice. And what its caller
 * signed with blobs or a delegation says more than could be signed here: without them it would be another transaction.
 */
async function differs(
  { store, codec }: RequeuePorts,
  { txId }: Tracked,
  ours: readonly Attempt[],
  foreign: ChainTransaction,
): Promise<boolean> {
  const bytes = await store.loadRawTransactions(ours.map(({ ordinal }) => ({ txId, ordinal })));
  const said = await Promise.all(bytes.map((raw) => codec.decodeTransaction(raw)));
  if (said.some((each) => rebuildable(each) === null)) return false;
  return said.every(
    ({ unsigned: { to, value, data } }) => to !== foreign.to || value !== foreign.value || data !== foreign.data,
  );
}

function move(lane: OwnedLane, tx: Tracked): Planned {
  const reason = `nonce ${tx.nonce} was used by ${tx.receipt?.txHash}, past recall; the transaction gets another`;
  const decision = { actor: "policy", audit: { policy: "requeue", nonce: tx.nonce, usedBy: tx.receipt?.txHash } };
  lane.leave(tx);
  return plan(tx, "requeue", { receipt: null, lastError: null, reason, decision });
}

/** The lane is read again: cursor, line and backlog have all changed. */
async function commitMoves(ports: RequeuePorts, lane: OwnedLane, planned: readonly Planned[]): Promise<void> {
  await commitPlanned(ports, lane, planned);
  for (const { txId, nonce } of planned.map(({ tx }) => tx)) {
    const message = `${txId} gets another nonce: another program used ${nonce} of ${lane.lane.signer}`;
    const about = { lane: lane.lane, txId };
    ports.telemetry.emit({ type: "alert", severity: "WARNING", code: "EXTERNAL_USE_REQUEUED", message, ...about });
  }
  lane.term.readAgain("transactions were given other nonces");
}
