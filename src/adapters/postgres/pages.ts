/** Keyset pages over transaction ids. Each kind of filter has the statement that its index can answer. */
import { isSettled } from "../../domain/transitions.ts";
import type { ListFilter, TransactionRecord } from "../../ports/query-store.ts";
import type { Connections } from "./connections.ts";
import { findByHash } from "./statements/find-by-hash.ts";
import { findByRequest } from "./statements/find-by-request.ts";
import { pageIntake } from "./statements/page-intake.ts";
import { pageLive } from "./statements/page-live.ts";
import { pageOutcome } from "./statements/page-outcome.ts";
import { pageSigner } from "./statements/page-signer.ts";
import { pageTransactions } from "./statements/page-transactions.ts";

type Id = { readonly tx_id: string };

/** Ids of the page, in the order asked for. By hash and by request id there are only a few, and no page is cut. */
export async function findPage(connections: Connections, filter: ListFilter): Promise<readonly string[]> {
  const rows = await connections.read(async (run): Promise<readonly Id[]> => {
    const page = [filter.order, filter.after ?? null, filter.limit, filter.chainId ?? null];
    const signer = filter.signer ?? null;
    const intake = () => run(pageIntake, [...page, signer]);
    if (filter.txHash !== undefined) return run(findByHash, [filter.txHash]);
    if (filter.requestId !== undefined) return run(findByRequest, [filter.requestId]);
    if (filter.state === "CREATED") return intake();
    if (filter.state !== undefined && !isSettled(filter.state)) return run(pageLive, [...page, signer, filter.state]);
    if (signer !== null)
      return union(run(pageSigner, [...page, signer, filter.state ?? null]), filter.state ? [] : intake());
    if (filter.state === undefined) return union(run(pageTransactions, page), intake());
    return union(run(pageOutcome, [...page, filter.state]), run(pageLive, [...page, signer, filter.state]));
  });
  const ids = rows.map((row) => row.tx_id).sort();
  return filter.order === "newest" ? ids.reverse() : ids;
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

async function union(...parts: readonly (Promise<readonly Id[]> | readonly Id[])[]): Promise<readonly Id[]> {
  return (await Promise.all(parts)).flat();
}
