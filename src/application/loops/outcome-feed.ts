/** Reads of the feed for deliveries. Subscribers at the same position share one read (queries/shared-reads.ts). */
import { isWanted, type OutcomeFilter } from "../../domain/webhooks/subscriber.ts";
import type { CompletionRecord, FeedPage, QueryStore } from "../../ports/query-store.ts";
import { SharedReads } from "../queries/shared-reads.ts";

/** Largest number of outcomes in one read. */
export const PAGE = 500;

export class OutcomeFeed {
  private readonly store;
  private readonly shared;

  constructor(store: Pick<QueryStore, "feed" | "costsOf">) {
    this.store = store;
    this.shared = new SharedReads(store);
  }

  /** Called when the feed grew: later reads include the new completions. */
  grew(): void {
    this.shared.renew();
  }

  read(after: number, limit: number): Promise<FeedPage> {
    return this.shared.read(after, limit);
  }

  /** The outcomes that a subscriber gets. The key of a transaction is read only if the filter names keys. */
  async wanted(filter: OutcomeFilter, items: readonly CompletionRecord[]): Promise<readonly CompletionRecord[]> {
    if (filter.keys === null) return items.filter((item) => isWanted(filter, item, null));
    const possible = items.filter((item) => isWanted({ ...filter, keys: null }, item, null));
    const costs = await this.store.costsOf([...new Set(possible.map(({ txId }) => txId))]);
    const owners = new Map(costs.map(({ txId, owner }) => [txId, owner]));
    return possible.filter((item) => isWanted(filter, item, owners.get(item.txId) ?? null));
  }
}
