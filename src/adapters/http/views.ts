import type { CompletionsPage as ApiPage, Created, SignerView, TransactionView } from "../../application/api.ts";
import type { ClusterNode, LaneLease } from "../../contract/cluster.ts";
import type { CompletionsPage } from "../../contract/completions.ts";
import type { CreatedTransaction } from "../../contract/create.ts";
import type { NonceReservation } from "../../contract/nonces.ts";
import type { SignerLane } from "../../contract/signers.ts";
import type { Explanation, Transaction } from "../../contract/transactions.ts";
import { defined } from "../../domain/defined.ts";
import type { Explanation as ExplanationOf } from "../../domain/explain/situation.ts";
import type { Address, Lane } from "../../domain/lane.ts";
import type { Reservation } from "../../domain/reservations.ts";
import type { Payload } from "../../domain/transaction.ts";
import type { InstanceRecord, LeaseRecord } from "../../ports/lease-store.ts";
import type { HistoryRecord } from "../../ports/query-store.ts";

/**
 * From the application's records to the contract's JSON: wei as digits, addresses as EIP-55, dates as ISO 8601. Members that
 * the contract does not name stay inside: an answer is written by the schema of its route.
 */

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

type Plain<T> = { [K in keyof T]: T[K] extends infer V ? (V extends bigint | Date ? string : V) : never };

function plain<T extends object>(record: T): Plain<T> {
  const told = { ...record } as Record<string, unknown>;
  for (const name in told) {
    const value = told[name];
    if (typeof value === "bigint") told[name] = value.toString();
    else if (value instanceof Date) told[name] = value.toISOString();
  }
  return told as Plain<T>;
}

function laneView({ chainId, signer }: Lane, checksum: Checksum) {
  return { chainId, signer: checksum(signer) };
}

export function createdView({ txId, lane, nonce, state, requestId }: Created, checksum: Checksum): CreatedTransaction {
  return { txId, chainId: lane.chainId, signer: checksum(lane.signer), nonce, state, requestId };
}

export function transactionView(view: TransactionView, checksum: Checksum): Transaction {
  const { lane, payload, receipt, history, confirmations, ...rest } = view;
  const contract = receipt?.contractAddress ?? null;
  return {
    ...plain(rest),
    ...laneView(lane, checksum),
    payload: payloadView(payload, checksum),
    attempts: view.attempts.map(({ fees, ...attempt }) => ({ ...plain(attempt), ...plain(fees) })),
    receipt: receipt && { ...plain(receipt), contractAddress: contract && checksum(contract) },
    ...defined({ history: history?.map(historyView), confirmations: confirmations && [...confirmations] }),
  };
}

function payloadView({ accessList, to, ...payload }: Payload, checksum: Checksum): Transaction["payload"] {
  const entries = accessList?.map(({ address, storageKeys }) => {
    return { address: checksum(address), storageKeys: [...storageKeys] };
  });
  return { ...plain(payload), to: to && checksum(to), ...defined({ accessList: entries }) };
}

function historyView({ token, decision, ...step }: HistoryRecord): NonNullable<Transaction["history"]>[number] {
  return { ...plain(step), actor: decision?.actor ?? null, audit: decision?.audit ?? null, fencingToken: token };
}

export function completionsView({ epoch, items, next }: ApiPage, checksum: Checksum): CompletionsPage {
  return { epoch, items: items.map(({ lane, ...item }) => ({ ...plain(item), ...laneView(lane, checksum) })), next };
}

export function signerView(view: SignerView, checksum: Checksum, now: Date): SignerLane {
  const { lane, owner, token, acquiredAt, oldestPendingAt, headOfLine, decisions, ...rest } = view;
  return {
    ...plain(rest),
    ...laneView(lane, checksum),
    holes: view.holes.map(plain),
    oldestPendingAgeSeconds: oldestPendingAt && ageSeconds(oldestPendingAt, now),
    headOfLine: headOfLine && plain(headOfLine),
    suspended: view.suspendedBy !== null,
    owner,
    lease: owner && plain({ fencingToken: token, acquiredAt, expiresAt: owner.expiresAt }),
    ...defined({ decisions: decisions?.map((made) => ({ ...plain(made), fencingToken: made.token })) }),
  };
}

export function nodeView(record: InstanceRecord): ClusterNode {
  return plain(record);
}

/** Null for a lane without an owner: there is no lease then, only the last token. */
export function leaseView({ lane, owner, token, acquiredAt }: LeaseRecord, checksum: Checksum): LaneLease | null {
  if (owner === null || acquiredAt === null) return null;
  return { ...plain(owner), ...laneView(lane, checksum), fencingToken: token, acquiredAt: acquiredAt.toISOString() };
}

export function reservationView({ lane, ...reservation }: Reservation, checksum: Checksum): NonceReservation {
  return { ...plain(reservation), ...laneView(lane, checksum) };
}

export function explanationView({ causes, help, ...explanation }: ExplanationOf): Explanation {
  return { ...explanation, causes: causes.map(plain), help: [...help] };
}

/** Never negative: the database's clock and ours may differ. */
function ageSeconds(since: Date, now: Date): number {
  return Math.max(0, Math.round((now.getTime() - since.getTime()) / 1000));
}
