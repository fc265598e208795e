/** Reads of the feed for deliveries. Subscribers that ask for the same page at the same time share one read. */
import { isWanted, type OutcomeFilter } from "../../domain/webhooks/subscriber.ts";
import type { CompletionRecord, FeedPage, QueryStore } from "../../ports/query-store.ts";

/** Largest number of outcomes in one read. */
export const PAGE = 500;

export class OutcomeFeed {
  private readonly store;
  private readonly underWay = new Map<string, Promise<FeedPage>>();

  constructor(store: Pick<QueryStore, "feed" | "costsOf">) {
    this.store = store;
  }

  read(after: number, limit: number): Promise<FeedPage> {
    const key = `${after} ${limit}`;
    const known = this.underWay.get(key);
    if (known !== undefined) return known;
    const reading = this.store.feed(after, limit).finally(() => this.underWay.delete(key));
    this.underWay.set(key, reading);
    return reading;
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
