import { FencepostError } from "../../domain/errors.ts";
import { condensed } from "../../domain/troubles/rows.ts";
import { rowOf } from "../../domain/troubles/table.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { ofChain } from "./node-reports.ts";

export interface ReadinessParts extends Pick<CallPorts, "chains" | "lanesOf"> {
  readonly store: Pick<CallPorts["store"], "ping">;
  readonly lease: { mayAct(): boolean };
  readonly reception: { readonly draining: boolean };
  /** `isOver` once the start-up phase is over: the node no longer waits for an earlier owner that may be dead. */
  readonly settlingIn: { readonly isOver: boolean };
}

/**
 * Readiness for a load balancer: the database accepts our lease, and a chain answers. Without `chainId` any chain is
 * enough, so that one chain's outage does not divert the other chains' traffic; with `chainId`, that chain must answer.
 */
export async function readiness(parts: ReadinessParts, chainId?: number) {
  const { store, lease, reception, settlingIn, lanesOf } = parts;
  const { draining } = reception;
  const chains = [...parts.chains.values()].filter(({ chain }) => chainId === undefined || chain.chainId === chainId);
  if (chains.length === 0) throw new FencepostError("UNKNOWN_CHAIN", `chain ${chainId} is not configured on this node`);
  const database = await store.ping().then(
    () => lease.mayAct(),
    () => false,
  );
  const views = chains.map((context) => {
    const { chainId } = context.chain;
    const { head } = context.follower;
    // Only codes are shown, because this call needs no API key. Lanes are left out, so that the cost does not grow with
    // their transactions: a chain without a usual block interval is not reported as stalled here.
    const troubles = new Set(condensed(ofChain(context, [])).map(({ code }) => code));
    return {
      chainId,
      reachable: head !== null && ![...troubles].some((code) => rowOf(code).unready),
      head: head?.number ?? null,
      headSince: context.headSince?.toISOString() ?? null,
      // Signers that do not answer do not make the node unready: their requests are accepted and wait.
      signersAway: lanesOf(chainId).filter(({ pace }) => pace.signer.kind === "away").length,
      troubles: [...troubles],
    };
  });
  const ready = database && settlingIn.isOver && !draining && views.some((entry) => entry.reachable);
  return { ready, database, chains: views, draining };
}
