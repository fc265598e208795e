/**
 * Beside stage 4: the gray zone. A node signs with a key of its own, and its answer did not arrive: there may be a
 * transaction at the nonce, and its hash is not known here. It is looked for by sender and nonce: on chain where the
 * count has passed the nonce, else in the node's pool. Found and saying what ours says, it is ours; saying something
 * else, another program used the key; not there for the whole timeout, it is sent anew, at the same nonce, so that at
 * most one of the two is mined.
 *
 * Reads: the chain by sender and nonce, payloads. Writes: UNKNOWN_SUBMIT_RESULT, then the hash, a foreign attempt with
 * its receipt, or PENDING again. Invariant I7: a look that failed decides nothing. A crash leaves
 * UNKNOWN_SUBMIT_RESULT, or PENDING without a hash, which the next owner treats as the same; it looks again, and its
 * patience goes on from when sight was lost.
 */

import type { Address, Hash } from "../../../domain/lane.ts";
import {
  searchBegun,
  searched,
  sightGivenUp,
  sightLost,
  sightRegained,
} from "../../../domain/pace/transaction-pace.ts";
import type { AlertCode } from "../../../domain/troubles/alerts.ts";
import { type ChainTransaction, unlessSilent } from "../../../ports/chain.ts";
import type { StoredPayload } from "../../../ports/lane-store.ts";
import type { GrayZoneResult } from "../../../ports/telemetry.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { findSent, type SentQuery } from "../../chain/find-sent.ts";
import type { Working } from "../../lane/activity.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, type Planned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { happened, type Tracked } from "../../lane/tracked.ts";
import { type Mined, mineForeign, saysTheSame } from "../5-receipt/external-use.ts";

/** A payload that a node may have signed and sent, and whose hash is not known. */
export function isOutOfSight({ status, attempts, pace }: Tracked): boolean {
  const unnamed = attempts.some(({ txHash, foreign }) => txHash === null && foreign !== true);
  return unnamed && !pace.claimed && (status.subState === "UNKNOWN_SUBMIT_RESULT" || status.state === "STUCK");
}

/** The answer to a send did not arrive, or named no transaction. */
export async function loseSight(ports: LanePorts, lane: OwnedLane, tx: Tracked, why: string): Promise<void> {
  happened(tx, sightLost, ports.clock.monotonicMs());
  const { state, subState } = tx.status;
  const isLost = state === "TRACKING" && subState !== "UNKNOWN_SUBMIT_RESULT";
  const event = isLost ? "loseSight" : "submitFailed";
  await commitPlanned(ports, lane, [plan(tx, event, { lastError: why, reason: why })]);
  report(ports, lane, { tx, result: "entered", detail: why });
}

/** Looks for everything of the lane that is out of sight and due. */
export function searchGrayZone(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  const nowMs = ports.clock.monotonicMs();
  const due: Tracked[] = [];
  for (const tx of lane.unmined.values()) {
    if (tx.receipt !== null || !isOutOfSight(tx) || tx.pace.inHand) continue;
    if (searchOf(ports, tx).nextMs <= nowMs) due.push(tx);
  }
  due.sort((a, b) => a.nonce - b.nonce);
  return due.length === 0 ? null : unlessSilent(searchEach(ports, context, lane, due), undefined);
}

async function searchEach(ports: LanePorts, context: ChainContext, lane: OwnedLane, due: readonly Tracked[]) {
  const payloads = await lane.term.during(ports.store.loadPayloads(due.map(({ txId }) => txId)));
  const { count } = await lane.term.during(context.counts.mined(lane.lane.signer, { atMostMs: 0 }));
  const seen = new Map<number, ChainTransaction>();
  for (const [index, tx] of due.entries()) {
    const found = await lane.term.during(look(context, { signer: lane.lane.signer, nonce: tx.nonce, seen }, count));
    await conclude(ports, context, { lane, tx, found, payload: payloads[index] as StoredPayload });
  }
}

/** Begun by this owner, or by one before it: the database says when. */
function searchOf({ clock }: LanePorts, tx: Tracked) {
  if (tx.pace.search !== null) return tx.pace.search;
  const nowMs = clock.monotonicMs();
  const ageMs = tx.lostSightAt === null ? 0 : Math.max(0, clock.now().getTime() - tx.lostSightAt.getTime());
  const begun = { sinceMs: nowMs - ageMs, nextMs: nowMs };
  happened(tx, searchBegun, begun);
  return begun;
}

type Found =
  | { readonly kind: "mined"; readonly transaction: ChainTransaction; readonly sent: Mined }
  | { readonly kind: "pooled"; readonly transaction: ChainTransaction }
  /** The nonce is free, as far as anybody can see. */
  | { readonly kind: "absent" }
  | { readonly kind: "unseen"; readonly detail: string };

async function look(context: ChainContext, wanted: SentQuery, count: number): Promise<Found> {
  if (count > wanted.nonce) {
    const sent = await findSent(context, wanted);
    if (sent.kind === "mined") return { kind: "mined", transaction: sent.transaction, sent };
    return { kind: "unseen", detail: sent.kind === "unseen" ? sent.detail : "no block that we follow shows it yet" };
  }
  const pooled = await inPool(context, wanted.signer, wanted.nonce);
  return pooled === null ? { kind: "absent" } : { kind: "pooled", transaction: pooled };
}

async function inPool({ chain }: ChainContext, signer: Address, nonce: number) {
  const direct = await chain.transactionBySenderAndNonce(signer, nonce);
  if (direct !== "unsupported" && direct !== null) return direct;
  const [hash = null] = (await chain.pooled(signer, [nonce])) ?? [];
  return hash === null ? null : chain.transaction(hash);
}

interface Conclusion {
  readonly lane: OwnedLane;
  readonly tx: Tracked;
  readonly found: Found;
  readonly payload: StoredPayload;
}

async function conclude(ports: LanePorts, context: ChainContext, work: Conclusion) {
  const { lane, tx, found, payload } = work;
  const nowMs = ports.clock.monotonicMs();
  const search = searchOf(ports, tx);
  happened(tx, searched, nowMs + (context.settings.grayZoneIntervalMs ?? context.settings.grayZoneTimeoutMs));
  if (tx.receipt !== null || !isOutOfSight(tx)) return;
  if ((found.kind === "mined" || found.kind === "pooled") && saysTheSame(payload, found.transaction)) {
    await adopt(ports, lane, tx, found.transaction.txHash);
  } else if (found.kind === "mined") {
    await commitPlanned(ports, lane, [mineForeign(ports, lane, tx, found.sent)]);
    report(ports, lane, { tx, result: "foreign", detail: found.transaction.txHash });
  } else if (nowMs - search.sinceMs >= context.settings.grayZoneTimeoutMs && found.kind !== "unseen") {
    await sendAnew(ports, lane, tx);
  }
}

/** Ours: tracked by its hash from here on, and its receipt found like any other's. */
async function adopt(ports: LanePorts, lane: OwnedLane, tx: Tracked, txHash: Hash) {
  const ordinal = tx.pace.sendOrdinal as number;
  happened(tx, sightRegained);
  const change = { identified: { ordinal, txHash }, accepted: { ordinal }, lastError: null };
  const reason = `found by sender and nonce: ${txHash}`;
  const event = tx.status.state === "STUCK" ? "resubmit" : "adopt";
  const planned = plan(tx, event, { ...change, reason });
  lane.follow(tx);
  await commitPlanned(ports, lane, [planned]);
  report(ports, lane, { tx, result: "adopted", detail: txHash });
  lane.broadcasting?.kick();
}

async function sendAnew(ports: LanePorts, lane: OwnedLane, tx: Tracked) {
  happened(tx, sightGivenUp);
  const reason = "its nonce is still free after the whole timeout: sent anew";
  const planned: readonly Planned[] = tx.status.state === "STUCK" ? [] : [plan(tx, "sendAnew", { reason })];
  if (planned.length > 0) await commitPlanned(ports, lane, planned);
  report(ports, lane, { tx, result: "sentAnew", detail: reason });
  lane.broadcasting?.kick();
}

const SAID: Readonly<Record<GrayZoneResult, { readonly code: AlertCode; readonly severity: "WARNING" | "ERROR" }>> = {
  entered: { code: "GRAY_ZONE_ENTERED", severity: "WARNING" },
  adopted: { code: "GRAY_ZONE_LEFT", severity: "WARNING" },
  foreign: { code: "GRAY_ZONE_LEFT", severity: "WARNING" },
  sentAnew: { code: "GRAY_ZONE_TIMED_OUT", severity: "ERROR" },
};

function report(
  ports: LanePorts,
  lane: OwnedLane,
  { tx, result, detail }: { readonly tx: Tracked; readonly result: GrayZoneResult; readonly detail: string },
) {
  const { txId, nonce } = tx;
  ports.telemetry.emit({ type: "gray.zone", lane: lane.lane, txId, nonce, result });
  const message = `what a node made of nonce ${nonce} of ${lane.lane.signer}: ${result} (${detail})`;
  ports.telemetry.emit({ type: "alert", ...SAID[result], message, lane: lane.lane, txId });
}
