/**
 * Keyset pages over transaction ids. Each shape of filter has a statement of its own, with the index that answers it: what
 * is over by outcome, what is live, and what waits in the intake table, of all or some chains, or of one signer.
 */
import { isSettled, type State } from "../../domain/transitions.ts";
import type { ListFilter, TransactionRecord } from "../../ports/query-store.ts";
import type { Reading, Run } from "./session/connections.ts";
import { findByHash } from "./statements/attempt.ts";
import { findByRequest } from "./statements/transaction.ts";
import {
  pageFinal,
  pageFinalOfSigner,
  pageIntake,
  pageIntakeOfSigner,
  pageLive,
  pageLiveOfSigner,
  pageLiveState,
  pageLiveStateOfSigner,
  pageTransactions,
  preferOrder,
} from "./statements/transaction-page.ts";

type Id = { readonly txId: string };

/** The states in which a transaction is no longer followed. */
const OUTCOMES: readonly State[] = ["CONFIRMED", "FAILED_FINAL"];

/** Ids of the page, in the order asked for. By hash and by request id there are only a few, and no page is cut. */
export async function findPage(reading: Reading, filter: ListFilter): Promise<readonly string[]> {
  const [, ...parts] = await reading.read((run) =>
    Promise.all([run(preferOrder, []) as Promise<readonly Id[]>, ...partsOf(run, filter)]),
  );
  const ids = parts.flatMap((rows) => rows.map((row) => row.txId)).sort();
  return filter.order === "newest" ? ids.reverse() : ids;
}

function partsOf(run: Run, filter: ListFilter): readonly Promise<readonly Id[]>[] {
  const { signer, state, chainId = null } = filter;
  const page = [filter.order, filter.after ?? null, filter.limit];
  const of = [...page, chainId];
  if (filter.txHash !== undefined) return [run(findByHash, [filter.txHash])];
  if (filter.requestId !== undefined) return [run(findByRequest, [filter.requestId])];
  const intake = () => (signer === undefined ? run(pageIntake, of) : run(pageIntakeOfSigner, [...of, signer]));
  if (state === "CREATED") return [intake()];
  const over = (outcome: State) =>
    signer === undefined ? run(pageFinal, [...of, outcome]) : run(pageFinalOfSigner, [...of, outcome, signer]);
  const live = (state: State) =>
    signer === undefined ? run(pageLiveState, [...of, state]) : run(pageLiveStateOfSigner, [...of, state, signer]);
  if (state !== undefined) return isSettled(state) ? [over(state), live(state)] : [live(state)];
  if (signer !== undefined) return [...OUTCOMES.map(over), run(pageLiveOfSigner, [...of, signer]), intake()];
  if (chainId !== null) return [...OUTCOMES.map(over), run(pageLive, of), intake()];
  return [run(pageTransactions, page), intake()];
}

/** True where `findPage` has looked at the leading filter alone. */
export function isNarrow(filter: ListFilter): boolean {
  return filter.txHash !== undefined || filter.requestId !== undefined;
}

/** The filters that a narrow look-up has left out. */
export function matches(record: TransactionRecord, filter: ListFilter): boolean {
  const beyond = filter.after === undefined || (filter.order === "newest") === record.txId < filter.after;
  return (
    beyond &&
    record.txId !== filter.after &&
    (filter.chainId === undefined || record.lane.chainId === filter.chainId) &&
    (filter.signer === undefined || record.lane.signer === filter.signer) &&
    (filter.state === undefined || record.state === filter.state) &&
    (filter.requestId === undefined || record.requestId === filter.requestId)
  );
}
