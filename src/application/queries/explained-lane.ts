/** Facts of a lane for an explanation: which node owns it, what stops it, and what comes before a transaction. */

import type { Lane } from "../../domain/lane.ts";
import type { Hole } from "../../domain/nonces/holes.ts";
import type { Forbidden } from "../../domain/policy/policy.ts";
import { attemptToSend } from "../../domain/transaction/attempts.ts";
import { feeCap } from "../../domain/transaction/fees.ts";
import { isSettled } from "../../domain/transaction/transitions.ts";
import { GAS_OF_NOTHING } from "../../domain/troubles/possible.ts";
import type { ExplainedHole, ExplainedLane } from "../../domain/troubles/situation.ts";
import { MAY_LACK_COMMITS } from "../../domain/troubles/words.ts";
import type { LaneRecord, TransactionRecord } from "../../ports/query-store.ts";
import type { ChainLook } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import type { KillSwitch } from "../cluster/kill-switch.ts";
import { forbiddenBy } from "../lane/limits.ts";
import type { ChainSettings } from "../settings.ts";
import type { AbiBook } from "./abis.ts";
import type { NodeReports } from "./node-reports.ts";
import { signerAwayOf } from "./signers.ts";

export interface ExplainPorts
  extends Pick<CallPorts, "clock" | "store" | "limits" | "chains" | "lanesOf" | "retention"> {
  readonly codec: Pick<CallPorts["codec"], "checksum">;
  readonly kills: Pick<KillSwitch, "concerning">;
  readonly reports: Pick<NodeReports, "unownedSince">;
  /** Puts the call, and the error that it reverted with, into words; if absent, they are left out. */
  readonly abiBook?: Pick<AbiBook, "calls" | "look">;
  readonly look?: (record: TransactionRecord) => Promise<ChainLook>;
  /** If true, the chain is not called: the values are those that the loops read last. */
  readonly remembered?: boolean;
}

interface OnChain {
  /** The chain's count of mined transactions; null if the chain does not answer. */
  readonly minedCount: number | null;
  /** The chain's settings; null if this node does not serve the chain. */
  readonly settings: Pick<ChainSettings, "holePolicy" | "expiredReservations"> | null;
}

/**
 * Maximum number of nonces above a hole that are searched for the next transaction: only reservations and more holes
 * can be in between.
 */
const MOST_LOOKED_AT = 64;
/**
 * Maximum number of transactions that are read to find one that is put on hold. If more are in between, a later request
 * finds it.
 */
const MOST_BETWEEN = 32;

export async function laneFacts(
  ports: ExplainPorts,
  record: TransactionRecord,
  onChain: OnChain,
): Promise<ExplainedLane> {
  const { store, kills, lanesOf } = ports;
  const { chainId, signer } = record.lane;
  const row = (await store.lanes(signer)).find(({ lane }) => lane.chainId === chainId);
  const known = {
    signer: ports.codec.checksum(signer),
    killed: kills.concerning(signer),
    ...(await suspension(ports, record.lane, row)),
    owner: row?.owner ?? null,
    signerAway: signerAwayOf(lanesOf(chainId), signer),
    unowned: ports.reports.unownedSince(record.lane),
    behind: record.nonce === null ? 0 : Math.max(0, (row?.cursor ?? 0) - 1 - record.nonce),
  };
  if (record.nonce === null || isSettled(record.state)) return { ...known, head: null, hole: null };
  return { ...known, ...(await standing(ports, { record, row, nonce: record.nonce }, onChain)) };
}

/** Number of the lane's latest decisions that are read to find the one that suspended it. */
const DECISIONS = 5;

async function suspension(
  { store }: ExplainPorts,
  lane: Lane,
  row: LaneRecord | undefined,
): Promise<Pick<ExplainedLane, "suspended" | "suspendedFor">> {
  const by = row?.suspendedBy ?? null;
  if (by === null) return { suspended: false, suspendedFor: null };
  if (by === "HISTORY") return { suspended: true, suspendedFor: MAY_LACK_COMMITS };
  const decision = (await store.laneDecisions(lane, DECISIONS)).find(({ action }) => action === "suspend");
  return { suspended: true, suspendedFor: decision === undefined ? null : `${decision.actor}: ${decision.reason}` };
}

interface Place {
  readonly record: TransactionRecord;
  readonly row: LaneRecord | undefined;
  readonly nonce: number;
}

/**
 * The transaction (`head`) or the hole (`hole`) at the nonce that the chain needs next. Both are null if that nonce is
 * the explained transaction's, or above it. If the chain does not answer, `head` is the lowest open transaction in the
 * database.
 */
async function standing(
  ports: ExplainPorts,
  place: Place,
  onChain: OnChain,
): Promise<Pick<ExplainedLane, "head" | "hole">> {
  const { record, row, nonce } = place;
  const { minedCount } = onChain;
  if (minedCount === null) {
    const head = row?.headOfLine ?? null;
    if (head === null || head.txId === record.txId) return { head: null, hole: null };
    const { heldSince } = (await ports.store.transaction(head.txId)) ?? {};
    return { head: { ...head, held: heldSince !== undefined }, hole: null };
  }
  if (minedCount >= nonce) return { head: null, hole: null };
  const next = await ports.store.transactionAt(record.lane, minedCount);
  if (next === null) return { head: null, hole: await holeAt(ports, place, { ...onChain, minedCount }) };
  const { txId, state, heldSince } = next;
  return { head: { txId, nonce: minedCount, state, held: heldSince !== undefined }, hole: null };
}

/**
 * The lowest transaction that is put on hold, between the lane's lowest open transaction and the given one, which has
 * to wait for it.
 */
export async function heldBetween(
  { store }: ExplainPorts,
  { lane, nonce }: TransactionRecord,
  head: number,
): Promise<TransactionRecord | null> {
  const end = Math.min(nonce ?? 0, head + 1 + MOST_BETWEEN);
  for (let next = head + 1; next < end; next++) {
    const found = await store.transactionAt(lane, next);
    if (found?.heldSince !== undefined) return found;
  }
  return null;
}

async function holeAt(
  ports: ExplainPorts,
  { record, row, nonce: below }: Place,
  { minedCount: nonce, settings }: OnChain & { readonly minedCount: number },
): Promise<ExplainedHole> {
  const hole = row?.holes.find((each) => each.nonce === nonce);
  // A nonce with neither a transaction nor a hole can only be reserved.
  const reserved = hole === undefined && (row?.reserved ?? 0) > 0;
  const above = hole === undefined ? null : await firstAbove(ports, record, { nonce, below });
  const filling = hole === undefined || above === null ? BY_ITSELF : fillingOf(hole, above, settings);
  const forbidden = filling.by !== "action" || above === null ? null : await forbiddenFilling(ports, hole, above);
  return { nonce, detail: hole?.detail ?? null, reserved, filling, forbidden };
}

const BY_ITSELF = { by: "itself" } as const;

/**
 * The lowest transaction above the hole, which is the lane's lowest open one. An action that fills the hole must name
 * that transaction.
 */
async function firstAbove(
  { store }: ExplainPorts,
  record: TransactionRecord,
  { nonce, below }: { readonly nonce: number; readonly below: number },
) {
  for (let next = nonce + 1; next < below && next <= nonce + MOST_LOOKED_AT; next++) {
    const found = await store.transactionAt(record.lane, next);
    if (found !== null) return found;
  }
  return below <= nonce + MOST_LOOKED_AT ? record : null;
}

function fillingOf(hole: Hole, above: TransactionRecord, settings: OnChain["settings"]): ExplainedHole["filling"] {
  const { state, txId, receipt, attempts } = above;
  // If the transaction above the hole is not signed yet, it moves down into the hole by itself.
  if (receipt !== null || (state !== "TRACKING" && state !== "STUCK")) return BY_ITSELF;
  if (attemptToSend(attempts)?.nodeSigned === true) return { by: "chainNode" };
  const repairs = hole.expired !== undefined && settings?.expiredReservations === "placeholder";
  // The lane's loop fills this hole by itself, unless the transaction above it is already STUCK: then filling failed
  // and an operator has to act.
  if (state !== "STUCK" && (repairs || settings?.holePolicy === "heal")) return BY_ITSELF;
  return { by: "action", txId };
}

async function forbiddenFilling(
  { limits }: ExplainPorts,
  hole: Hole | undefined,
  { lane, attempts }: TransactionRecord,
): Promise<Forbidden | null> {
  const price = attempts.findLast((each) => each.foreign !== true)?.fees;
  if (!limits?.policies || price === undefined) return null;
  const owner = hole?.expired?.owner ?? null;
  const use = await limits.use(lane, owner === null ? {} : { owner });
  const gasCost = GAS_OF_NOTHING * feeCap(price);
  return forbiddenBy(limits, use, { to: lane.signer, data: "0x", value: 0n, gasCost, about: "placeholder" });
}
