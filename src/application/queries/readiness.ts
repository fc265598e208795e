import { FencepostError } from "../../domain/errors.ts";
import type { QueryStore } from "../../ports/query-store.ts";
import type { Readiness } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";

export interface ReadinessParts {
  readonly store: Pick<QueryStore, "ping">;
  readonly lease: { mayAct(): boolean };
  readonly chains: readonly ChainContext[];
  readonly draining: boolean;
  /** No earlier owner that may be dead is waited for. */
  readonly settledIn: boolean;
}

/**
 * Whether a load balancer should send requests here: the database takes our word, and a chain answers. Any of them, so that
 * one chain's outage does not take the others' traffic away; the one that was asked for, where one was.
 */
export async function readiness(parts: ReadinessParts, chainId?: number): Promise<Readiness> {
  const { store, lease, draining, settledIn } = parts;
  const chains = parts.chains.filter(({ chain }) => chainId === undefined || chain.chainId === chainId);
  if (chains.length === 0) throw new FencepostError("UNKNOWN_CHAIN", `chain ${chainId} is not configured here`);
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
  const ready = database && settledIn && !draining && views.some((entry) => entry.reachable);
  return { ready, database, chains: views, draining };
}
