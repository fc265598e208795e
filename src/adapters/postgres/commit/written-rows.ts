/** What a commit writes of its plan: rows with a member for each column of their statement (`rowsOf`). */

import type { Use } from "../../../domain/policy/use.ts";
import type { FeeWishes } from "../../../domain/transaction/fees.ts";
import { intentRow } from "../rows/transaction-fields.ts";
import type { LockedLaneRow } from "../statements/lane.ts";
import type { Move } from "./move.ts";
import { stepsOnRow } from "./ordinary-life.ts";
import type { Allocation, LanePlan, Plan } from "./plan.ts";

export function allocationRow({ intent, nonce, lane: { row }, acceptedAt, stepsBefore }: Allocation) {
  return intentRow(intent, {
    nonce,
    acceptedAt,
    gasLimit: intent.gas,
    nodeId: row.nodeId,
    token: row.token,
    stepsBefore: stepsBefore || null,
    pinned: intent.exactNonce === undefined ? null : true,
  });
}

export function awaitingRow({ intent, approval: { rule, expiresAt } }: Plan["awaiting"][number]) {
  return intentRow(intent, { awaits: rule, expiresAt });
}

export function laneRow({ lane, left }: { readonly lane: LanePlan; readonly left: LockedLaneRow }) {
  const { confirmed, failed, live } = lane;
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

export function leftRow(row: LockedLaneRow) {
  const {
    chainId,
    signer,
    ownerInstance: instanceId,
    token,
    nextNonce,
    suspendedBy,
    reconciledEpoch,
    policyStamp,
  } = row;
  const departed = row.departedBelow !== null;
  return { chainId, signer, instanceId, token, nextNonce, suspendedBy, reconciledEpoch, departed, policyStamp };
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

export function changedPayloads({ before: { txId }, lane: { row }, change }: Move) {
  if (change === undefined) return [];
  return { ...NO_WISHES, ...change.payload, txId, chainId: row.chainId, kind: change.kind, gasLimit: change.gas };
}

const NO_PRICE = { type: undefined, gasPrice: undefined, maxFeePerGas: undefined, maxPriorityFeePerGas: undefined };
const NO_WISHES = { gas: undefined, ...NO_PRICE, accessList: undefined };

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

export function foundReceipts({ before: { txId }, lane: { row }, receipt }: Move) {
  if (!receipt) return [];
  const { txHash, blockNumber, blockHash, transactionIndex, status, gasUsed, effectiveGasPrice } = receipt;
  const { contractAddress, besideGas, besideGasUnsure } = receipt;
  return {
    ...{ txId, chainId: row.chainId, txHash, blockNumber, blockHash, transactionIndex, status },
    ...{ gasUsed, effectiveGasPrice, contractAddress, besideGas, besideGasUnsure },
  };
}

export function laneUseRow({ row, use }: { readonly row: LockedLaneRow; readonly use: Use }) {
  const { hour, day, hourMs } = use;
  const amounts = { hourValue: hour.value, hourCost: hour.cost, dayValue: day.value, dayCost: day.cost };
  return { chainId: row.chainId, signer: row.signer, useHour: new Date(hourMs), ...amounts };
}

export function chargeRow({ txId, lane: { row }, charge }: Plan["charges"][number]) {
  return { ...charge, txId, chainId: row.chainId, countedIn: new Date(charge.hourMs) };
}

export function completionRow(completion: Plan["completions"][number]) {
  const { txId, requestId, nonce, state, subState, settled, txHash } = completion;
  const { chainId, signer } = completion.lane.row;
  return { txId, chainId, signer, requestId, nonce, state, subState, settled, txHash };
}
