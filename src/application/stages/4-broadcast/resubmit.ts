/**
 * Beside stage 4: the claim that must stand before bytes are sent again. The bytes are those the database already
 * holds; what changes is who may send them: a claim belongs to its term, and a later term claims anew.
 *
 * Reads: raw bytes of attempts. Writes: the claim (submission counted, time noted). A crash after the claim leaves
 * bytes that may or may not have left; the next owner claims and sends them again, which a node answers "already
 * known".
 */

import { bytesRead, claimed } from "../../../domain/pace/transaction-pace.ts";
import { isPrivate } from "../../../domain/transaction/attempts.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane, Tracked } from "../../lane/owned-lane.ts";
import { happened, isHeldBack } from "../../lane/tracked.ts";

/** Afterwards every one of them may be sent, with its bytes at hand, but for what was held back meanwhile. */
export async function claimAgain(
  ports: LanePorts,
  { lane, context }: { readonly lane: OwnedLane; readonly context: ChainContext },
  transactions: readonly Tracked[],
): Promise<void> {
  const unclaimed = transactions.filter((tx) => !tx.pace.claimed);
  if (unclaimed.length === 0) return;
  await lane.term.during(fetchBytes(ports, unclaimed));
  const wanted = unclaimed.filter((tx) => !isHeldBack(tx));
  const planned = wanted.map((tx) => {
    const claim = { ordinal: tx.pace.sendOrdinal as number };
    const due = disclosesNow(ports, context, tx) ? DISCLOSED : {};
    return plan(tx, "resubmit", tx.held ? { claim, ordered: true, ...due } : { claim, ...due });
  });
  await commitPlanned(ports, lane, planned);
  for (const tx of wanted) happened(tx, claimed);
  await ports.failpoint("resubmit.claimed");
}

const DISCLOSED = { disclosed: true, reason: "publicAfter is over: public endpoints are given it too" } as const;

/** The private endpoints have had it for as long as the settings leave it to them alone. */
function disclosesNow({ clock }: LanePorts, { settings }: ChainContext, { attempts, firstSentAt }: Tracked): boolean {
  const { publicAfterMs } = settings;
  if (publicAfterMs === null || firstSentAt === null || !isPrivate(attempts)) return false;
  return clock.now().getTime() - firstSentAt.getTime() >= publicAfterMs;
}

/** What a node signs itself is stored as a payload, and asked for when it is sent. */
function hasBytes({ attempts, pace }: Tracked): boolean {
  return attempts.find(({ ordinal }) => ordinal === pace.sendOrdinal)?.nodeSigned !== true;
}

async function fetchBytes(ports: LanePorts, transactions: readonly Tracked[]): Promise<void> {
  const missing = transactions.filter((tx) => tx.pace.rawTransaction === null && hasBytes(tx));
  if (missing.length === 0) return;
  const keys = missing.map((tx) => ({ txId: tx.txId, ordinal: tx.pace.sendOrdinal as number }));
  const found = await ports.store.loadRawTransactions(keys);
  missing.forEach((tx, index) => {
    happened(tx, bytesRead, found[index] ?? null);
  });
}
