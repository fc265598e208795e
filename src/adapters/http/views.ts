import type {
  CompletionsPage as ApiPage,
  ChainLook,
  Created,
  KeyView,
  KillAnswer,
  PoliciesView,
  PolicyUsageView,
  PolicyVerdict as PolicyVerdictOf,
  SignerView,
  TransactionView,
  UsedView,
} from "../../application/api.ts";
import type { ClusterNode, LaneLease } from "../../contract/cluster.ts";
import type { Completion, CompletionsPage } from "../../contract/completions.ts";
import type { CreatedTransaction } from "../../contract/create.ts";
import type { Keys } from "../../contract/keys.ts";
import type { KillSwitchState } from "../../contract/kill.ts";
import type { NonceReservation } from "../../contract/nonces.ts";
import type { PoliciesInForce, PolicyUsage, PolicyVerdict } from "../../contract/policies.ts";
import type { SignerLane, SignerLanes } from "../../contract/signers.ts";
import type { Explanation, Transaction } from "../../contract/transactions.ts";
import type { Checksum } from "../../domain/checksum.ts";
import { defined } from "../../domain/defined.ts";
import type { Address, Lane } from "../../domain/lane.ts";
import type { Reservation } from "../../domain/reservations.ts";
import type { Payload } from "../../domain/transaction.ts";
import { isSettled } from "../../domain/transitions.ts";
import type { Explanation as ExplanationOf } from "../../domain/troubles/situation.ts";
import type { KeyTerms } from "../../ports/key-store.ts";
import type { InstanceRecord, LeaseRecord } from "../../ports/lease-store.ts";
import type { CompletionRecord, HistoryRecord } from "../../ports/query-store.ts";

/**
 * From the application's records to the contract's JSON: wei as digits, addresses as EIP-55, dates as ISO 8601. Members that
 * the contract does not name stay inside: an answer is written by the schema of its route.
 */

type Plain<T> = { [K in keyof T]: T[K] extends infer V ? (V extends bigint | Date ? string : V) : never };

/** The record in JSON's terms, with these members beside its own or instead of them. */
function told<T extends object, M extends object>(record: T, members: M): Omit<Plain<T>, keyof M> & M {
  const copy = { ...record } as Record<string, unknown>;
  for (const name in copy) {
    const value = copy[name];
    if (typeof value === "bigint") copy[name] = value.toString();
    else if (value instanceof Date) copy[name] = value.toISOString();
  }
  // Not by spreading: V8 adds members to what was spread some ten times slower.
  return Object.assign(copy as Plain<T>, members);
}

function plain<T extends object>(record: T): Plain<T> {
  return told(record, {}) as Plain<T>;
}

function laneView({ chainId, signer }: Lane, checksum: Checksum) {
  return { chainId, signer: checksum(signer) };
}

export function createdView({ txId, lane, nonce, state, requestId }: Created, checksum: Checksum): CreatedTransaction {
  return { txId, chainId: lane.chainId, signer: checksum(lane.signer), nonce, state, requestId };
}

export function transactionView(view: TransactionView, checksum: Checksum): Transaction {
  const { lane, payload, attempts, receipt, history, confirmations, onChain, awaiting, worstCost, ...rest } = view;
  const contract = receipt?.contractAddress ?? null;
  const known = told(rest, {
    chainId: lane.chainId,
    signer: checksum(lane.signer),
    payload: payloadView(payload, checksum),
    attempts: attempts.map((attempt) => told(attempt, plain(attempt.fees))),
    // In another casing it is an address still.
    receipt:
      receipt &&
      told(receipt, {
        contractAddress: contract && (checksum(contract) as Address),
        verified: isSettled(view.state),
      }),
    validUntil: view.validUntil?.toISOString() ?? null,
    heldSince: view.heldSince?.toISOString() ?? null,
    ...(awaiting && { approval: approvalView(awaiting, worstCost) }),
  });
  if (history === undefined && confirmations === undefined && onChain === undefined) return known;
  const asked = {
    history: history?.map(historyView),
    confirmations: confirmations && [...confirmations],
    onChain: onChain && onChainView(onChain, checksum),
  };
  return { ...known, ...defined(asked) };
}

function approvalView({ rule, expiresAt }: NonNullable<TransactionView["awaiting"]>, worstCost: bigint | undefined) {
  return { rule, expiresAt: expiresAt.toISOString(), worstCost: worstCost?.toString() ?? null };
}

function onChainView({ logs, revert, ...look }: ChainLook, checksum: Checksum): NonNullable<Transaction["onChain"]> {
  const shown = logs.map(({ address, topics, event, ...log }) => ({
    ...log,
    address: checksum(address),
    topics: [...topics],
    event: event && { name: event.name, args: event.args.map((arg) => ({ ...arg })) },
  }));
  return { ...plain(look), logs: shown, revert: revert && { ...revert } };
}

function payloadView({ accessList, to, ...payload }: Payload, checksum: Checksum): Transaction["payload"] {
  const known = told(payload, { to: to && checksum(to) });
  if (accessList === undefined) return known;
  const entries = accessList.map(({ address, storageKeys }) => {
    return { address: checksum(address), storageKeys: [...storageKeys] };
  });
  return { ...known, accessList: entries };
}

function historyView({ token, decision, ...step }: HistoryRecord): NonNullable<Transaction["history"]>[number] {
  return told(step, { actor: decision?.actor ?? null, audit: decision?.audit ?? null, fencingToken: token });
}

export function completionsView({ items, ...page }: ApiPage, checksum: Checksum): CompletionsPage {
  return { ...page, items: items.map((item) => completionView(item, checksum)) };
}

/** Member by member, unlike the others: pages of the feed are long, and read all the time. */
function completionView(record: CompletionRecord, checksum: Checksum): Completion {
  const { seq, epoch, txId, lane, requestId, nonce, state, subState, settled, txHash } = record;
  const { chainId, signer } = laneView(lane, checksum);
  const at = record.at.toISOString();
  return { seq, epoch, txId, chainId, signer, requestId, nonce, state, subState, settled, txHash, at };
}

export function signersView(views: readonly SignerView[], checksum: Checksum, now: Date): SignerLanes {
  return { items: views.map((view) => signerView(view, checksum, now)) };
}

function signerView(view: SignerView, checksum: Checksum, now: Date): SignerLane {
  const { owner, token, acquiredAt, oldestPendingAt, headOfLine, decisions, ...rest } = view;
  const made = decisions?.map((decision) => told(decision, { fencingToken: decision.token }));
  return told(rest, {
    ...laneView(view.lane, checksum),
    holes: view.holes.map(plain),
    oldestPendingAgeSeconds: oldestPendingAt && ageSeconds(oldestPendingAt, now),
    headOfLine: headOfLine && plain(headOfLine),
    signerAway: view.signerAway && plain(view.signerAway),
    window: view.window && { ...view.window },
    suspended: view.suspendedBy !== null,
    owner,
    lease: owner && plain({ fencingToken: token, acquiredAt, expiresAt: owner.expiresAt }),
    ...defined({ decisions: made }),
  });
}

export function nodeView(record: InstanceRecord): ClusterNode {
  return plain(record);
}

export function killView({ durable, kills, nodes }: KillAnswer, checksum: Checksum): KillSwitchState {
  const spelt = kills.map((kill) => ({ ...kill, signer: kill.signer === null ? null : checksum(kill.signer) }));
  return { durable, kills: spelt, nodes: [...nodes] };
}

/** Null for a lane without an owner: there is no lease then, only the last token. */
export function leaseView({ lane, owner, token, acquiredAt }: LeaseRecord, checksum: Checksum): LaneLease | null {
  if (owner === null || acquiredAt === null) return null;
  return told({ ...owner, acquiredAt, fencingToken: token }, laneView(lane, checksum));
}

export function reservationView(reservation: Reservation, checksum: Checksum): NonceReservation {
  return told(reservation, laneView(reservation.lane, checksum));
}

export function explanationView({ causes, help, actions, ...explanation }: ExplanationOf): Explanation {
  return { ...explanation, causes: causes.map(plain), help: [...help], actions: [...actions] };
}

export function keyTermsView(terms: KeyTerms, checksum: Checksum) {
  const { name, scopes, signers, chains, createsPerSecond, readsPerSecond, queueShare } = terms;
  return {
    name,
    scopes: [...scopes],
    signers: signers === null ? null : signers.map(checksum),
    chains: chains && [...chains],
    ...{ createsPerSecond, readsPerSecond, queueShare },
  };
}

export function keysView(keys: readonly KeyView[], checksum: Checksum): Keys {
  return {
    items: keys.map(({ createdAt, secrets, ...terms }) => {
      return { ...keyTermsView(terms, checksum), createdAt: createdAt.toISOString(), secrets: secrets.map(plain) };
    }),
  };
}

export function policiesView({ changedAt, ...inForce }: PoliciesView): PoliciesInForce {
  return { ...inForce, changedAt: changedAt?.toISOString() ?? null };
}

export function policyVerdictView({ value, cost, ...verdict }: PolicyVerdictOf): PolicyVerdict {
  return { ...verdict, value: `${value}`, cost: `${cost}` };
}

export function policyUsageView({ at, signers, keys }: PolicyUsageView, checksum: Checksum): PolicyUsage {
  return {
    at: at.toISOString(),
    signers: signers.map(({ lane, ...used }) => ({ ...laneView(lane, checksum), ...usedView(used) })),
    keys: keys.map(({ chainId, key, ...used }) => ({ chainId, key, ...usedView(used) })),
  };
}

function usedView({ since, hour, day }: UsedView) {
  const digits = (wei: bigint | null) => (wei === null ? null : wei.toString());
  const window = ({ value, cost, maxValue, maxCost }: UsedView["hour"]) => {
    return { value: `${value}`, cost: `${cost}`, maxValue: digits(maxValue), maxCost: digits(maxCost) };
  };
  return { since: since.toISOString(), hour: window(hour), day: window(day) };
}

/** Never negative: the database's clock and ours may differ. */
function ageSeconds(since: Date, now: Date): number {
  return Math.max(0, Math.round((now.getTime() - since.getTime()) / 1000));
}
