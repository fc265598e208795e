import { FencepostError } from "../../domain/errors.ts";
import type { Ports } from "../../ports/ports.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";

export interface ReadinessParts {
  readonly store: Pick<Ports["store"], "ping">;
  readonly lease: { mayAct(): boolean };
  readonly chains: readonly ChainContext[];
  readonly lanesOf: CallPorts["lanesOf"];
  readonly draining: boolean;
  /** True once the start-up phase is over: the node no longer waits for an earlier owner that may be dead. */
  readonly settledIn: boolean;
}

/**
 * Readiness for a load balancer: the database accepts our lease, and a chain answers. Without `chainId` any chain is
 * enough, so that one chain's outage does not divert the other chains' traffic; with `chainId`, that chain must answer.
 */
export async function readiness(parts: ReadinessParts, chainId?: number) {
  const { store, lease, draining, settledIn, lanesOf } = parts;
  const chains = parts.chains.filter(({ chain }) => chainId === undefined || chain.chainId === chainId);
  if (chains.length === 0) throw new FencepostError("UNKNOWN_CHAIN", `chain ${chainId} is not configured on this node`);
  const answered = await store.ping().then(
    () => true,
    () => false,
  );
  const database = answered && lease.mayAct();
  const views = chains.map(({ chain, reachable, follower }) => ({
    chainId: chain.chainId,
    reachable: reachable && follower.head !== null,
    head: follower.head?.number ?? null,
    // Signers that do not answer do not make the node unready: their requests are accepted and wait.
    signersAway: lanesOf(chain.chainId).filter(({ pace }) => pace.signer.kind === "away").length,
  }));
  const ready = database && settledIn && !draining && views.some((entry) => entry.reachable);
  return { ready, database, chains: views, draining };
}
