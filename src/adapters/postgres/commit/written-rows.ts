/**
 * Builds the rows of a commit, with a member for each column of their statement. Rows are written as literals: in
 * Node.js 20 each member added to a spread object costs two microseconds, a hundred times as much as in a literal.
 */
import type { FeeWishes } from "../../../domain/transaction/fees.ts";
import type { PreparedIntent } from "../../../domain/transaction/transaction.ts";
import { intentRow } from "../rows/transaction-fields.ts";
import type { LockedLaneRow } from "../statements/lane.ts";
import type { Move } from "./move.ts";
import { stepsOnRow } from "./ordinary-life.ts";
import type { Kept, LanePlan, Plan } from "./plan.ts";

export function allocationRow(
  intent: PreparedIntent,
  nonce: number,
  { nodeId, token }: LockedLaneRow,
  { acceptedAt, stepsBefore }: ReturnType<Plan["accepted"]>,
) {
  return intentRow(intent, {
    nonce,
    acceptedAt,
    gasLimit: intent.gas,
    nodeId,
    token,
    stepsBefore: stepsBefore || null,
    pinned: intent.exactNonce === undefined ? null : true,
  });
}

/** The changed row of a lane; no row if nothing of the lane changes. */
export function laneRow(lane: LanePlan) {
  const { confirmed, failed, live } = lane;
  const left = lane.left();
  if (left === lane.row && live === null && confirmed === 0 && failed === 0) return [];
  return {
    chainId: left.chainId,
    signer: left.signer,
    token: left.token,
    nextNonce: left.nextNonce,
    suspendedBy: left.suspendedBy,
    reconciledEpoch: left.reconciledEpoch,
    confirmed,
    failed,
    liveAllocated: live?.ALLOCATED ?? 0,
    liveTracking: live?.TRACKING ?? 0,
    liveStuck: live?.STUCK ?? 0,
    liveConfirmed: live?.CONFIRMED ?? 0,
    liveFailed: live?.FAILED_FINAL ?? 0,
  };
}

export function moveRow({ before, after, lane, claimed, claims, lastError, steps, holds, expires }: Move) {
  const { item, nonce } = after;
  const setsNonce = nonce !== before.nonce;
  return {
    txId: before.txId,
    fromState: before.state,
    setsNonce: setsNonce || null,
    nonce: setsNonce ? nonce : null,
    state: item.to,
    subState: item.subState,
    historyCount: after.step,
    lastEvent: item.event,
    attemptCount: after.attemptCount,
    claimToken: claimed === null ? null : lane.row.token,
    claimOrdinal: claimed,
    acceptedOrdinal: after.acceptedOrdinal,
    claims,
    setsError: lastError === undefined ? null : true,
    lastError,
    steps: stepsOnRow(before, steps),
    holds,
    expires: expires || null,
  };
}

export function payloadRow({ before: { txId }, lane: { row }, change }: Move) {
  if (change === undefined) return [];
  return { ...change.payload, txId, chainId: row.chainId, kind: change.kind, gasLimit: change.gas };
}

export function attemptRows({ before: { txId }, lane: { row }, attempts }: Move) {
  return attempts.map(({ attempt, claimed }) => {
    const fees: FeeWishes = attempt.fees;
    return {
      txId,
      ordinal: attempt.ordinal,
      chainId: row.chainId,
      txHash: attempt.txHash,
      kind: attempt.kind,
      gas: attempt.gas,
      type: fees.type,
      gasPrice: fees.gasPrice,
      maxFeePerGas: fees.maxFeePerGas,
      maxPriorityFeePerGas: fees.maxPriorityFeePerGas,
      isForeign: attempt.foreign,
      nodeSigned: attempt.nodeSigned,
      isPrivate: attempt.private,
      rawTransaction: attempt.rawTransaction,
      claimed: claimed || null,
    };
  });
}

export function sentRows({ before: { txId }, sent }: Move) {
  return sent.map((ordinal) => ({ txId, ordinal }));
}

export function identifiedRows({ before: { txId }, identified }: Move) {
  return identified.map((each) => ({ ...each, txId }));
}

export function receiptRow({ before: { txId }, lane: { row }, receipt }: Move) {
  if (!receipt) return [];
  return {
    txId,
    chainId: row.chainId,
    txHash: receipt.txHash,
    blockNumber: receipt.blockNumber,
    blockHash: receipt.blockHash,
    transactionIndex: receipt.transactionIndex,
    status: receipt.status,
    gasUsed: receipt.gasUsed,
    effectiveGasPrice: receipt.effectiveGasPrice,
    contractAddress: receipt.contractAddress,
    besideGas: receipt.besideGas,
    besideGasUnsure: receipt.besideGasUnsure,
  };
}

export function chargeRow([{ txId, charge }, { row }]: Kept<"charged">[number]) {
  return { ...charge, txId, chainId: row.chainId, countedIn: new Date(charge.hourMs) };
}

export function completionRow([{ completion }, { row }]: Kept<"completed">[number]) {
  const { txId, requestId, nonce, state, subState, settled, txHash } = completion;
  return { txId, chainId: row.chainId, signer: row.signer, requestId, nonce, state, subState, settled, txHash };
}
