import type { QueryStore } from "../../ports/query-store.ts";
import type { Readiness } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";

export interface ReadinessParts {
  readonly store: Pick<QueryStore, "ping">;
  readonly lease: { mayAct(): boolean };
  readonly chains: readonly ChainContext[];
  readonly draining: boolean;
  /** Nobody who was here before, and may be dead, is waited for. */
  readonly settledIn: boolean;
}

/** Whether a load balancer should send requests here: the database takes our word, and every chain answers. */
export async function readiness({ store, lease, chains, draining, settledIn }: ReadinessParts): Promise<Readiness> {
  const answered = await store.ping().then(
    () => true,
    () => false,
  );
  const database = answered && lease.mayAct();
  const views = chains.map(({ chain, reachable, follower }) => ({
    chainId: chain.chainId,
    reachable: reachable && follower.head !== null,
    head: follower.head?.number ?? null,
  }));
  const ready = database && settledIn && !draining && views.every((entry) => entry.reachable);
  return { ready, database, chains: views, draining };
}
