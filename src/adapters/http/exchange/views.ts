import type { ChainLook, Created, TransactionView } from "../../../application/api.ts";
import type { CreatedTransaction } from "../../../contract/schemas/create.ts";
import type { Transaction } from "../../../contract/schemas/transaction-schema.ts";
import { defined } from "../../../domain/defined.ts";
import type { Checksum } from "../../../domain/text/checksum.ts";
import type { Payload } from "../../../domain/transaction/transaction.ts";
import { isSettled } from "../../../domain/transaction/transitions.ts";
import type { HistoryRecord } from "../../../ports/query-store.ts";

/**
 * Converts transactions to the contract's JSON by hand-written code, because they are read most often; every other
 * response is converted by its schema (`present-answer.ts`). Members that the contract does not name are dropped later,
 * when the response is serialised by its route's schema.
 */

type Plain<T> = { [K in keyof T]: T[K] extends infer V ? PlainValue<V> : never };
type PlainValue<V> = V extends bigint ? `${bigint}` : V extends Date ? string : V;

/** Copies a record with bigints and dates as text. `members` are added, and replace members of the same name. */
function plainWith<T extends object, M extends object>(record: T, members: M): Omit<Plain<T>, keyof M> & M {
  const copy = { ...record } as Record<string, unknown>;
  for (const name in copy) {
    const value = copy[name];
    if (typeof value === "bigint") copy[name] = value.toString();
    else if (value instanceof Date) copy[name] = value.toISOString();
  }
  // Use `Object.assign`, not a spread: V8 adds members to a spread object some ten times slower.
  return Object.assign(copy as Plain<T>, members);
}

function plain<T extends object>(record: T) {
  return plainWith(record, {}) as Plain<T>;
}

export function createdView({ txId, lane, nonce, state, requestId }: Created, checksum: Checksum): CreatedTransaction {
  return { txId, chainId: lane.chainId, signer: checksum(lane.signer), nonce, state, requestId };
}

export function transactionView(view: TransactionView, checksum: Checksum): Transaction {
  const { lane, payload, attempts, receipt, history, confirmations, onChain, decoded, ...own } = view;
  const { awaiting, worstCost, ...rest } = own;
  const contract = receipt?.contractAddress ?? null;
  const known = plainWith(rest, {
    chainId: lane.chainId,
    signer: checksum(lane.signer),
    payload: payloadView(payload, checksum),
    attempts: attempts.map((attempt) => plainWith(attempt, plain(attempt.fees))),
    receipt:
      receipt &&
      plainWith(receipt, { contractAddress: contract && checksum(contract), verified: isSettled(view.state) }),
    validUntil: view.validUntil?.toISOString() ?? null,
    heldSince: view.heldSince?.toISOString() ?? null,
    ...(decoded && { decoded: { ...decoded, args: decoded.args.map((arg) => ({ ...arg })) } }),
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
  return {
    rule,
    expiresAt: expiresAt.toISOString(),
    worstCost: worstCost === undefined ? null : (`${worstCost}` as const),
  };
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
  const known = plainWith(payload, { to: to && checksum(to) });
  if (accessList === undefined) return known;
  const entries = accessList.map(({ address, storageKeys }) => {
    return { address: checksum(address), storageKeys: [...storageKeys] };
  });
  return { ...known, accessList: entries };
}

function historyView({ token, decision, ...step }: HistoryRecord): NonNullable<Transaction["history"]>[number] {
  return plainWith(step, { actor: decision?.actor ?? null, audit: decision?.audit ?? null, fencingToken: token });
}
