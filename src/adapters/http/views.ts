import type {
  CompletionsPage as ApiCompletionsPage,
  Created,
  SignerView,
  TransactionView,
} from "../../application/api.ts";
import type { ClusterNode, LaneLease } from "../../contract/cluster.ts";
import type { Completion, CompletionsPage } from "../../contract/completions.ts";
import type { CreatedTransaction } from "../../contract/create.ts";
import type { SignerLane } from "../../contract/signers.ts";
import type { Transaction } from "../../contract/transactions.ts";
import type { Fees, FeeWishes } from "../../domain/fees.ts";
import type { Address } from "../../domain/lane.ts";
import type { Payload, Receipt } from "../../domain/transaction.ts";
import type { InstanceRecord, LeaseRecord } from "../../ports/lease-store.ts";
import type { AttemptRecord, CompletionRecord, HistoryRecord, LaneDecisionRecord } from "../../ports/query-store.ts";

/** From the application's records to the contract's JSON: wei as digits, addresses as EIP-55, dates as ISO 8601. */

export type Checksum = (address: Address) => string;

const REMEMBERED_ADDRESSES = 10_000;

/** A checksum costs a keccak, and lists name the same few accounts again and again. Forgets everything when full. */
export function rememberingChecksum(checksum: Checksum): Checksum {
  const known = new Map<Address, string>();
  return (address) => {
    const remembered = known.get(address);
    if (remembered !== undefined) return remembered;
    if (known.size === REMEMBERED_ADDRESSES) known.clear();
    const text = checksum(address);
    known.set(address, text);
    return text;
  };
}

export function createdView(created: Created, checksum: Checksum): CreatedTransaction {
  return {
    txId: created.txId,
    chainId: created.lane.chainId,
    signer: checksum(created.lane.signer),
    nonce: created.nonce,
    state: created.state,
    requestId: created.requestId,
  };
}

export function transactionView(view: TransactionView, checksum: Checksum): Transaction {
  return {
    txId: view.txId,
    chainId: view.lane.chainId,
    signer: checksum(view.lane.signer),
    requestId: view.requestId,
    nonce: view.nonce,
    state: view.state,
    subState: view.subState,
    txHash: view.txHash,
    payload: payloadView(view.payload, checksum),
    gas: digits(view.gas),
    metadata: view.metadata,
    attempts: view.attempts.map(attemptView),
    receipt: view.receipt === null ? null : receiptView(view.receipt, checksum),
    lastError: view.lastError,
    submitAttempts: view.submitAttempts,
    lastSubmittedAt: iso(view.lastSubmittedAt),
    nextResubmitAt: iso(view.nextResubmitAt),
    createdAt: view.createdAt.toISOString(),
    updatedAt: view.updatedAt.toISOString(),
    confirmedAt: iso(view.confirmedAt),
    ...(view.history === undefined ? {} : { history: view.history.map(historyView) }),
    ...(view.confirmations === undefined
      ? {}
      : { confirmations: view.confirmations.map(({ number, hash }) => ({ number, hash })) }),
  };
}

export function completionsView(page: ApiCompletionsPage, checksum: Checksum): CompletionsPage {
  return {
    epoch: page.epoch,
    items: page.items.map((item) => completionView(item, checksum)),
    next: page.next,
  };
}

export function signerView(view: SignerView, checksum: Checksum, now: Date): SignerLane {
  const { owner, headOfLine, decisions } = view;
  return {
    chainId: view.lane.chainId,
    signer: checksum(view.address),
    cursor: view.cursor,
    chainCounts: view.chainCounts,
    pending: view.pending,
    confirmed: view.confirmed,
    failed: view.failed,
    stuck: view.stuck,
    reserved: view.reserved,
    holes: view.holes.map(({ nonce, why, detail, since }) => ({ nonce, why, detail, since: since.toISOString() })),
    oldestPendingAgeSeconds: view.oldestPendingAt === null ? null : ageSeconds(view.oldestPendingAt, now),
    headOfLine: headOfLine === null ? null : { ...headOfLine, createdAt: headOfLine.createdAt.toISOString() },
    balance: digits(view.balance),
    suspended: view.suspendedBy !== null,
    suspendedBy: view.suspendedBy,
    owner: owner === null ? null : { nodeId: owner.nodeId, instanceId: owner.instanceId, url: owner.url },
    lease:
      owner === null
        ? null
        : { fencingToken: view.token, acquiredAt: iso(view.acquiredAt), expiresAt: owner.expiresAt.toISOString() },
    ...(decisions === undefined ? {} : { decisions: decisions.map(decisionView) }),
  };
}

function decisionView({ token, at, ...decision }: LaneDecisionRecord): NonNullable<SignerLane["decisions"]>[number] {
  return { ...decision, fencingToken: token, at: at.toISOString() };
}

export function nodeView(record: InstanceRecord): ClusterNode {
  const { nodeId, instanceId, url, version, mode, startedAt, heartbeatAt, lanes } = record;
  const times = { startedAt: startedAt.toISOString(), heartbeatAt: heartbeatAt.toISOString() };
  return { nodeId, instanceId, url, version, mode, ...times, lanes };
}

/** Null for a lane without an owner: there is no lease then, only the last token. */
export function leaseView({ lane, owner, token, acquiredAt }: LeaseRecord, checksum: Checksum): LaneLease | null {
  if (owner === null || acquiredAt === null) return null;
  return {
    chainId: lane.chainId,
    signer: checksum(lane.signer),
    nodeId: owner.nodeId,
    instanceId: owner.instanceId,
    fencingToken: token,
    acquiredAt: acquiredAt.toISOString(),
    expiresAt: owner.expiresAt.toISOString(),
  };
}

function completionView(record: CompletionRecord, checksum: Checksum): Completion {
  return {
    seq: record.seq,
    epoch: record.epoch,
    txId: record.txId,
    chainId: record.lane.chainId,
    signer: checksum(record.lane.signer),
    requestId: record.requestId,
    nonce: record.nonce,
    state: record.state,
    subState: record.subState,
    settled: record.settled,
    txHash: record.txHash,
    at: record.at.toISOString(),
  };
}

function payloadView(payload: Payload, checksum: Checksum): Transaction["payload"] {
  const { gas, type, accessList } = payload;
  return {
    to: payload.to === null ? null : checksum(payload.to),
    data: payload.data,
    value: payload.value.toString(),
    ...(gas === undefined ? {} : { gas: gas.toString() }),
    ...(type === undefined ? {} : { type }),
    ...feesView(payload),
    ...(accessList === undefined
      ? {}
      : {
          accessList: accessList.map((entry) => ({
            address: checksum(entry.address),
            storageKeys: [...entry.storageKeys],
          })),
        }),
  };
}

function attemptView(attempt: AttemptRecord): Transaction["attempts"][number] {
  return {
    ordinal: attempt.ordinal,
    kind: attempt.kind,
    txHash: attempt.txHash,
    gas: attempt.gas.toString(),
    type: attempt.fees.type,
    ...feesView(attempt.fees),
    createdAt: attempt.createdAt.toISOString(),
    firstSentAt: iso(attempt.firstSentAt),
  };
}

function feesView(fees: Fees | FeeWishes) {
  const { gasPrice, maxFeePerGas, maxPriorityFeePerGas } = fees as FeeWishes;
  return {
    ...(gasPrice === undefined ? {} : { gasPrice: gasPrice.toString() }),
    ...(maxFeePerGas === undefined ? {} : { maxFeePerGas: maxFeePerGas.toString() }),
    ...(maxPriorityFeePerGas === undefined ? {} : { maxPriorityFeePerGas: maxPriorityFeePerGas.toString() }),
  };
}

function receiptView(receipt: Receipt, checksum: Checksum): NonNullable<Transaction["receipt"]> {
  return {
    txHash: receipt.txHash,
    blockNumber: receipt.blockNumber,
    blockHash: receipt.blockHash,
    transactionIndex: receipt.transactionIndex,
    status: receipt.status,
    gasUsed: receipt.gasUsed.toString(),
    effectiveGasPrice: digits(receipt.effectiveGasPrice),
    contractAddress: receipt.contractAddress === null ? null : checksum(receipt.contractAddress),
  };
}

function historyView(record: HistoryRecord): NonNullable<Transaction["history"]>[number] {
  const { token, firstAt, lastAt, decision, ...rest } = record;
  const decided = { actor: decision?.actor ?? null, audit: decision?.audit ?? null };
  const times = { firstAt: firstAt.toISOString(), lastAt: lastAt.toISOString() };
  return { ...rest, ...decided, fencingToken: token, ...times };
}

function digits(value: bigint | null): string | null {
  return value === null ? null : value.toString();
}

function iso(date: Date | null): string | null {
  return date === null ? null : date.toISOString();
}

/** Never negative: the database's clock and ours may differ. */
function ageSeconds(since: Date, now: Date): number {
  return Math.max(0, Math.round((now.getTime() - since.getTime()) / 1000));
}
