/**
 * Finds the pages of lists of transactions: ids first, by an index that has their order; rows are then read by key.
 *
 * A list is ordered by transaction id. An id begins with the time at which a node made it, by the node's clock; the
 * row's `created_at` is the database's time of the commit. A list that is limited to a range of time is read between
 * the ids of that range, widened by `SKEW_MS` on both sides, and the rows in it are compared by `created_at`. So no
 * index of `created_at` has to be written for each transaction. A row whose id and `created_at` differ by more than
 * `SKEW_MS` may be missing from such a list.
 */
import { isWithin, permitted } from "../../../domain/keys/principal.ts";
import { isSettled, type State } from "../../../domain/transaction/transitions.ts";
import type { ListFilter, TransactionRecord } from "../../../ports/query-store.ts";
import { ask, type Reading } from "../session/connections.ts";
import { findByHash } from "../statements/attempt.ts";
import type { Command } from "../statements/statement.ts";
import { findByRequest } from "../statements/transaction.ts";
import * as pages from "../statements/transaction-page.ts";

/** Greatest difference between a transaction's id and its `created_at`: clocks that differ, and a commit that waited. */
const SKEW_MS = 5 * 60_000;
/** Number of rows whose time is compared at once, at most; the first time, as many as the page has. */
const COMPARED_AT_ONCE = 1_000;

/** A list's filter. `nonceless`: false leaves out intents that wait for a nonce. */
export type PageFilter = ListFilter & { readonly nonceless?: false };

/**
 * Ids of one page of a list, in its order. If the filter has a hash or a request id, only that part of it is applied,
 * and the page may be longer than its limit: few rows share one, and the caller applies the rest (`matches`).
 */
export async function pageOf(reading: Reading, filter: PageFilter): Promise<readonly string[]> {
  if (isNarrow(filter)) return findPage(reading, filter);
  const { createdAfter, createdBefore, limit } = filter;
  if (createdAfter !== undefined || createdBefore !== undefined) return pageOfRange(reading, filter);
  return (await findPage(reading, filter)).slice(0, limit);
}

async function pageOfRange(reading: Reading, filter: PageFilter): Promise<readonly string[]> {
  const { limit, order } = filter;
  const [from, to] = idsAround(filter);
  const [begin, end] = order === "newest" ? [to, from] : [from, to];
  const isBeyond = (id: string, bound: string) => (order === "newest" ? id < bound : id > bound);
  const found: string[] = [];
  let after = filter.after !== undefined && isBeyond(filter.after, begin) ? filter.after : begin;
  for (let size = limit; found.length < limit; size = Math.max(limit, Math.min(4 * size, COMPARED_AT_ONCE))) {
    const ids = (await findPage(reading, { ...filter, after, limit: size })).slice(0, size);
    const within = ids.filter((id) => !isBeyond(id, end));
    const times = within.length === 0 ? [] : await ask(reading, pages.readCreationTimes(within));
    const createdAt = new Map(times.map((row) => [row.txId, row.createdAt]));
    found.push(...within.filter((id) => isCreatedWithin(filter, createdAt.get(id))));
    const last = within.at(-1);
    if (last === undefined || within.length < size) break;
    after = last;
  }
  return found.slice(0, limit);
}

function isCreatedWithin({ createdAfter, createdBefore }: ListFilter, at: Date | undefined) {
  return (
    at !== undefined &&
    (createdAfter === undefined || at >= createdAfter) &&
    (createdBefore === undefined || at < createdBefore)
  );
}

/** The first and the last id that a transaction of the filter's range of time may have. */
function idsAround({ createdAfter, createdBefore }: ListFilter): readonly [from: string, to: string] {
  const from = createdAfter === undefined ? 0 : createdAfter.getTime() - SKEW_MS;
  const to = createdBefore === undefined ? LAST_MS : createdBefore.getTime() + SKEW_MS;
  return [idAt(from, "0"), idAt(to, "f")];
}

const LAST_MS = 2 ** 48 - 1;

/** A UUID that begins with a time (RFC 9562, section 5.7) and continues with one digit. */
function idAt(ms: number, digit: "0" | "f") {
  const time = Math.min(Math.max(Math.trunc(ms), 0), LAST_MS)
    .toString(16)
    .padStart(12, "0");
  const rest = digit.repeat(4);
  return `${time.slice(0, 8)}-${time.slice(8)}-${rest}-${rest}-${rest.repeat(3)}`;
}

/** Outcomes of a transaction, after which its owner no longer follows it. */
const OUTCOMES: readonly State[] = ["CONFIRMED", "FAILED_FINAL"];

/**
 * Finds the ids of a page, in the requested order: a keyset page over transaction ids. Each combination of filters has
 * a separate statement with a matching index: final rows by outcome, live rows, and waiting intake rows, of all or some
 * chains, or of some signers. Only a few rows share a hash or a request id, so all ids that have one are returned; the
 * caller filters and limits them.
 */
export async function findPage(reading: Reading, filter: PageFilter): Promise<readonly string[]> {
  const [, ...parts] = await reading.read(pages.preferOrder(), ...partsOf(filter));
  const ids = parts.flatMap((rows) => rows.map((row) => row.txId)).sort();
  return filter.order === "newest" ? ids.reverse() : ids;
}

function partsOf({
  order,
  after,
  limit,
  nonceless,
  ...filter
}: PageFilter): readonly Command<{ readonly txId: string }>[] {
  const { state, txHash, requestId, within } = filter;
  const chains = permitted(filter.chainId, within?.chains);
  const signers = permitted(filter.signer, within?.signers);
  const of = [order, after, limit, chains];
  if (txHash !== undefined) return [findByHash(txHash)];
  if (requestId !== undefined) return [findByRequest(requestId)];
  const waiting = signers === null ? pages.pageIntake(...of) : pages.pageIntakeOfSigners(...of, signers);
  if (state === "CREATED") return [waiting];
  const intake = nonceless === false ? [] : [waiting];
  const over = (outcome: State) =>
    signers === null ? pages.pageFinal(...of, outcome) : pages.pageFinalOfSigners(...of, outcome, signers);
  if (state !== undefined) {
    const live =
      signers === null ? pages.pageLiveState(...of, state) : pages.pageLiveStateOfSigners(...of, state, signers);
    return isSettled(state) ? [over(state), live] : [live];
  }
  if (signers !== null) return [...OUTCOMES.map(over), pages.pageLiveOfSigners(...of, signers), ...intake];
  if (chains !== null) return [...OUTCOMES.map(over), pages.pageLive(...of), ...intake];
  return [pages.pageTransactions(order, after, limit), ...intake];
}

/** True if the filter contains a hash or a request id. `findPage` then applies only that part of the filter. */
export function isNarrow(filter: ListFilter) {
  return filter.txHash !== undefined || filter.requestId !== undefined;
}

/** Applies the parts of a filter that `findPage` ignores if it looks up a hash or a request id. */
export function matches(record: TransactionRecord, filter: ListFilter) {
  const beyond = filter.after === undefined || (filter.order === "newest") === record.txId < filter.after;
  return (
    beyond &&
    record.txId !== filter.after &&
    isCreatedWithin(filter, record.createdAt) &&
    (filter.within === undefined || isWithin(filter.within, record.lane)) &&
    (filter.chainId === undefined || record.lane.chainId === filter.chainId) &&
    (filter.signer === undefined || record.lane.signer === filter.signer) &&
    (filter.state === undefined || record.state === filter.state) &&
    (filter.requestId === undefined || record.requestId === filter.requestId)
  );
}
