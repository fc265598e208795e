/**
 * Beside stage 5: another program used the key. A nonce of ours that the chain's count has passed, while none of our
 * payloads is mined there, was taken by a foreign transaction: it is found, and kept as an attempt that is not ours,
 * with its receipt. From there on the ordinary road decides: finality, withdrawal in a reorg, the watch.
 *
 * Reads: the chain's count, the foreign transaction, its receipt. Writes: TRACKING/MINED with an attempt of kind
 * external. Invariant I7: a count alone decides nothing, nor does a look that failed; only the foreign transaction on
 * the canonical chain does. A crash leaves what was there; the next owner's first answer "nonce too low" begins the
 * same look.
 */

import { checkSet, countReported } from "../../../domain/pace/count-events.ts";
import { externalUseUnseen } from "../../../domain/pace/lane-pace.ts";
import { lookOwed } from "../../../domain/pace/transaction-pace.ts";
import { isDue } from "../../../domain/pace/when.ts";
import { hashesOf } from "../../../domain/transaction/attempts.ts";
import type { SignedAttempt } from "../../../domain/transaction/transaction.ts";
import { type ChainTransaction, ChainUnavailable, type SentContents } from "../../../ports/chain.ts";
import type { StoredPayload } from "../../../ports/lane-store.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { findSent, type Sent } from "../../chain/find-sent.ts";
import type { Working } from "../../lane/activity.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, type Planned, plan, withOwnContract } from "../../lane/lane-writer.ts";
import type { OwnedLane, Tracked } from "../../lane/owned-lane.ts";
import { happened } from "../../lane/tracked.ts";

/** How many nonces of a lane are looked into in one pass; the rest has its turn in the next. */
const AT_ONCE = 16;

/** Looks into every nonce of the lane that seems to be used up by another program. */
export function noticeExternalUse(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  const nowMs = ports.clock.monotonicMs();
  const suspects = suspectsOf(lane).length;
  if (suspects === 0) endUnseen(context, lane);
  const due = suspects > 0 || countIsDue(context, lane, nowMs);
  return !due || !isDue(lane.pace.externalLook, nowMs) ? null : lookInto(ports, context, lane);
}

async function lookInto(ports: LanePorts, context: ChainContext, lane: OwnedLane): Promise<void> {
  const planned: Planned[] = [];
  try {
    const { counts, settings } = context;
    const { count } = await lane.term.during(counts.mined(lane.lane.signer, { atMostMs: settings.pollIntervalMs }));
    happened(lane, countReported, count);
    const consumed = suspectsOf(lane).filter(({ nonce }) => nonce < count);
    const isWhole = await findForeign(ports, context, { lane, consumed: consumed.slice(0, AT_ONCE), planned });
    if (isWhole) endUnseen(context, lane);
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
  }
  // Also where the chain fell silent half-way: memory has moved for those that were found.
  if (planned.length > 0) await commitPlanned(ports, lane, planned);
}

/** A head of line that is not mined may have been overtaken without a word: the count is asked at the pace of stale receipts. */
function countIsDue(context: ChainContext, lane: OwnedLane, nowMs: number): boolean {
  const nonce = lane.headOfLine();
  const { check } = lane.pace.counts;
  const isSame = nonce !== null && check?.nonce === nonce;
  if (isSame && nowMs < check.dueMs) return false;
  const next = nonce === null ? null : { nonce, dueMs: nowMs + context.settings.staleReceiptTimeoutMs };
  if (check !== next) happened(lane, checkSet, next);
  return isSame;
}

/** Passed by the count as far as anybody has heard, and already looked for by its own hashes. */
function suspectsOf(lane: OwnedLane): readonly Tracked[] {
  let passed = lane.pace.counts.reported;
  for (const nonce of lane.mined.keys()) passed = Math.max(passed, nonce);
  const suspects: Tracked[] = [];
  for (const tx of lane.unmined.values()) {
    if (tx.nonce >= passed && tx.pace.answer !== "nonceConsumed") continue;
    if (tx.receipt !== null || tx.pace.look.kind === "owed") continue;
    // What a node signed out of our sight may be what stands there: 4-broadcast/gray-zone.ts looks into that.
    if (tx.attempts.every(({ txHash }) => txHash !== null)) suspects.push(tx);
  }
  return suspects.sort((a, b) => a.nonce - b.nonce);
}

interface Consumed {
  readonly lane: OwnedLane;
  readonly consumed: readonly Tracked[];
  /** What is found, as it is found. */
  readonly planned: Planned[];
}

/** False: of one of them it cannot be shown what stands at its nonce. */
async function findForeign(
  ports: LanePorts,
  context: ChainContext,
  { lane, consumed, planned }: Consumed,
): Promise<boolean> {
  const seen = new Map<number, ChainTransaction>();
  let isWhole = true;
  for (const tx of consumed) {
    const sent = await lane.term.during(findSent(context, { signer: lane.lane.signer, nonce: tx.nonce, seen }));
    if (sent.kind === "unseen") {
      reportUnseen(ports, context, { lane, tx, detail: sent.detail });
      isWhole = false;
    }
    if (sent.kind !== "mined" || tx.receipt !== null) continue;
    const ours = tx.attempts.some(({ txHash, foreign }) => foreign !== true && txHash === sent.transaction.txHash);
    // Ours after all, and missed so far: the look by hash brings its receipt in.
    if (ours) happened(tx, lookOwed);
    else if (await lane.term.during(noneOfOursIsMined(context, tx))) {
      const isOurs = await lane.term.during(isMadeByNode(ports, tx, sent.transaction));
      if (tx.receipt !== null) continue;
      planned.push(isOurs ? mineMisnamed(ports, lane, tx, sent) : mineForeign(ports, lane, tx, sent));
    }
  }
  return isWhole;
}

/** A node that signs may have named another hash than that of what it made: what says the same at our nonce is ours. */
async function isMadeByNode({ store }: LanePorts, tx: Tracked, found: ChainTransaction): Promise<boolean> {
  if (!tx.attempts.some(({ nodeSigned }) => nodeSigned === true)) return false;
  const [payload] = await store.loadPayloads([tx.txId]);
  return payload !== undefined && saysTheSame(payload, found);
}

export function saysTheSame({ payload }: StoredPayload, { to, value, data }: SentContents): boolean {
  return payload.to === to && payload.value === value && payload.data === data;
}

/** Followed by its real hash from here on. */
function mineMisnamed(ports: LanePorts, lane: OwnedLane, tx: Tracked, sent: Mined): Planned {
  const attempt = externalAttempt(tx, sent.transaction);
  const receipt = withOwnContract(ports, lane, tx, sent.receipt);
  const reason = `found by nonce: ${attempt.txHash}`;
  const planned = plan(tx, "mine", { attempt, receipt, lastError: null, reason });
  lane.mine(tx);
  lane.follow(tx);
  return planned;
}

function externalAttempt({ attempts }: Tracked, { txHash, gas, fees }: ChainTransaction): SignedAttempt {
  return { ordinal: attempts.length + 1, kind: "external", txHash, gas, fees, rawTransaction: null };
}

/** A node that shows a receipt for one of ours as well contradicts itself: then nothing is decided. */
async function noneOfOursIsMined({ chain }: ChainContext, tx: Tracked): Promise<boolean> {
  const receipts = await chain.receipts(hashesOf(tx.attempts));
  return receipts.every((receipt) => receipt === null) && tx.receipt === null;
}

export type Mined = Extract<Sent, { kind: "mined" }>;

/** Notes in memory that a foreign transaction stands at the nonce; returns what is to be written. */
export function mineForeign(ports: LanePorts, lane: OwnedLane, tx: Tracked, sent: Mined): Planned {
  const { txHash } = sent.transaction;
  const { txId, nonce } = tx;
  const reason = `nonce ${nonce} was used by ${txHash}, which is not ours`;
  // A reorg may have taken it away before, and brought it back now.
  const known = tx.attempts.some((attempt) => attempt.txHash === txHash);
  const attempt = known ? {} : { attempt: { ...externalAttempt(tx, sent.transaction), foreign: true as const } };
  const receipt = withOwnContract(ports, lane, tx, sent.receipt);
  const planned = plan(tx, "mine", { ...attempt, receipt, lastError: reason, reason });
  lane.mine(tx);
  lane.follow(tx);
  const message = `another program uses the key of ${lane.lane.signer}: its nonce ${nonce} went to ${txHash}`;
  ports.telemetry.emit({
    type: "alert",
    severity: "CRITICAL",
    code: "EXTERNAL_KEY_USE",
    message,
    lane: lane.lane,
    txId,
  });
  return planned;
}

/** Looked into again, at the pace of the gray zone: a node that lags, or an authorisation that left no transaction. */
function reportUnseen(
  ports: LanePorts,
  context: ChainContext,
  { lane: owned, tx, detail }: { readonly lane: OwnedLane; readonly tx: Tracked; readonly detail: string },
): void {
  const { lane } = owned;
  const { txId, nonce } = tx;
  const againInMs = context.settings.grayZoneIntervalMs ?? context.settings.staleReceiptTimeoutMs;
  happened(owned, externalUseUnseen, ports.clock.monotonicMs() + againInMs);
  const message = `nonce ${nonce} of ${lane.signer} is used up on chain, and by what cannot be shown: ${detail}`;
  context.standing.raise({ severity: "WARNING", code: "NONCE_CONSUMED_UNSEEN", message, lane, txId });
}

function endUnseen({ standing }: ChainContext, { lane }: OwnedLane): void {
  if (standing.size === 0) return;
  standing.resolve({ code: "NONCE_CONSUMED_UNSEEN", lane }, `what was mined at the nonces of ${lane.signer} is known`);
}
