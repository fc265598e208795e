import type { Readiness } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";

export interface ReadinessPorts {
  readonly store: { ping(): Promise<void> };
  readonly chains: ReadonlyMap<number, ChainContext>;
}

/** Whether this node should get traffic: database and every chain answer, and it may act. */
export async function readiness(
  ports: ReadinessPorts,
  node: { readonly mayAct: boolean; readonly draining: boolean },
): Promise<Readiness> {
  const answered = await ports.store.ping().then(
    () => true,
    () => false,
  );
  const database = answered && node.mayAct;
  const chains = [...ports.chains.values()].map(({ chain, reachable, follower }) => ({
    chainId: chain.chainId,
    reachable: reachable && follower.head !== null,
    head: follower.head?.number ?? null,
  }));
  const ready = database && !node.draining && chains.every((entry) => entry.reachable);
  return { ready, database, chains, draining: node.draining };
}
