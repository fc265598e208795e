import { systemClock } from "../../../adapters/system/clock.ts";
import { audit } from "./audit.ts";
import { type Accepted, sendAll } from "./callers.ts";
import { followConfirmed, untilConfirmed } from "./confirmed.ts";
import type { EmbeddedCluster } from "./embedded-cluster.ts";
import type { NodeChild } from "./node-child.ts";
import type { Progress } from "./progress.ts";

/** Sends so many transfers, numbered from `from`. `onAccepted` gets the number of all accepted ones. */
type Send = (transactions: number, from: number, onAccepted: (count: number) => void) => Promise<void>;

/** Runs `work`, which sends the transfers, waits until they are confirmed, and compares database and chain. */
export async function auditedLoad<T>(
  { chain, nodes, signers }: EmbeddedCluster,
  { transactions, progress }: { readonly transactions: number; readonly progress: Progress },
  work: (send: Send) => Promise<T>,
) {
  const startedMs = systemClock.monotonicMs();
  const accepted: Accepted[] = [];
  const confirmed = followConfirmed(nodes);
  const show = () => progress.update(accepted.length, confirmed.count());
  const recipient = (chain.accounts.at(-1) as { address: string }).address;
  const done = await work((count, from, onAccepted) =>
    sendAll({ transactions: count, from, signers, recipient, nodes }, (one) => {
      accepted.push(one);
      show();
      onAccepted(accepted.length);
    }),
  );
  await untilConfirmed(transactions, confirmed, show);
  // The last confirmation may have arrived since the last update.
  show();
  confirmed.stop();
  const survivor = nodes.find((node) => node.alive()) as NodeChild;
  const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
  return { done, accepted, survivor, report: { ...(await audit(survivor.client, chain, accepted)), seconds } };
}
