/**
 * Builds the rows of the attention list, the list of troubles that need a person. Some facts come from the database,
 * others are known to only one node.
 */

import type { UnconfirmedRefusal } from "../chain/unconfirmed-refusal.ts";
import type { Kill } from "../cluster/kills.ts";
import type { Notice, NoticeEvidence } from "../cluster/notices.ts";
import type { Lane } from "../lane.ts";
import type { LedgerTransaction, SuspendedBy } from "../ledger/index.ts";
import { domainOf } from "../messages/domain-of.ts";
import type { SignatureRecord } from "../messages/record.ts";
import type { Hole } from "../nonces/holes.ts";
import type { LaneTransaction } from "../transaction/transaction.ts";
import { offersFor } from "./advice.ts";
import { type ReportedFacts, type Trouble, trouble } from "./rows.ts";
import type { Disputed } from "./situation.ts";
import { rowOf, type TroubleCode } from "./table.ts";
import {
  type Away,
  awayText,
  behind,
  doubtText,
  ether,
  holeText,
  inSentence,
  killText,
  MAY_LACK_COMMITS,
  type SignerAbsence,
  suspensionText,
  unownedText,
} from "./words.ts";

/**
 * Age from which a nonce gap is reported. Usually the next transaction fills it, or transactions above it move down,
 * well before.
 */
const HOLE_PATIENCE_MS = 10_000;

export function ofLane(of: TroubledLane, now: Date): readonly Trouble[] {
  const { lane, suspendedBy, decision, open, head, hole } = of;
  const found: Trouble[] = [];
  if (suspendedBy !== null) {
    const isHistory = suspendedBy === "HISTORY";
    const why = decision === null ? null : `${decision.actor}: ${decision.reason}`;
    const sentence = waitingFor(suspensionText(isHistory ? MAY_LACK_COMMITS : why), open);
    const since = isHistory ? null : (decision?.at ?? null);
    const actions = offersFor(lane, ["RESUME_LANE"]);
    const code = isHistory ? "LANE_AWAITS_OPERATOR" : "LANE_SUSPENDED";
    found.push(trouble(code, { ...lane, sentence, since, waiting: open, actions }));
  }
  if (head?.state === "STUCK") found.push(ofTransaction("STUCK", { ...head, lane, open }, "it was not mined in time"));
  // A nonce gap with no transaction above it is no trouble: the next transaction gets its nonce.
  if (hole === null || head === null || head.nonce < hole.nonce) return found;
  if (now.getTime() - hole.since.getTime() < HOLE_PATIENCE_MS) return found;
  const { nonce, since } = hole;
  const actions = offersFor({ hole: { nonce, txId: head.txId } }, ["FILL_HOLE"]);
  const about = { ...lane, since, nonce, txId: head.txId, waiting: open, actions };
  return [...found, trouble("HOLE_BELOW", { ...about, sentence: waitingFor(holeText(hole), open) }, nonce)];
}

function waitingFor(text: string, waiting: number) {
  return `${inSentence(text)}${behind(waiting)}`;
}

/**
 * Row of the attention list about one transaction. `text` is shown until the explanation of the transaction has been
 * computed.
 */
export function ofTransaction(code: TroubleCode, of: TroubledTransaction, text: string): Trouble {
  const { lane, txId, nonce, since, open, facts } = of;
  const waiting = nonce === null ? 0 : Math.max(0, open - 1);
  const sentence = `${nonce === null ? inSentence(text) : `Nonce ${nonce}: ${text}.`}${behind(waiting)}`;
  const actions = offersFor({ txId, ...lane }, rowOf(code).helps ?? []);
  const about = { id: `tx:${txId}`, ...lane, txId, nonce, since, waiting, actions };
  return trouble(code, { ...about, sentence, ...(facts && { facts }) });
}

export const ofHeld = (of: TroubledTransaction): Trouble =>
  ofTransaction("HELD", of, "somebody holds it back: nothing of it is sent");

export const ofAwaiting = (of: TroubledTransaction): Trouble =>
  ofTransaction("AWAITING_APPROVAL", of, "it waits until an API key with the scope approve has approved it");

/** A requested signature that waits for approval. */
export function ofSignature({ signatureId, lane, message, owner, rule, createdAt }: SignatureRecord): Trouble {
  const domain = domainOf(message);
  const what = message.kind === "typedData" ? `the typed data ${message.primaryType}` : "a text";
  const asker = owner === null ? "" : `, asked for by ${owner}`;
  const sentence = `A signature of ${what}${domain === null ? "" : ` for ${domain}`}${asker}, waits for approval by rule ${rule}.`;
  const actions = offersFor({ signatureId }, ["DECIDE_SIGNATURE"]);
  const id = `signature:${signatureId}`;
  return trouble("AWAITING_APPROVAL", { id, sentence, since: createdAt, ...lane, signatureId, actions });
}

export function ofKill(kill: KillInForce): Trouble {
  const { killId, signer, at: since } = kill;
  const actions = offersFor({ signer, isOwnKill: signer !== null }, ["END_KILL"]);
  return trouble("KILLED", { sentence: inSentence(killText(kill)), since, signer, actions }, killId);
}

export function ofNode({ nodeId, instanceId, lanes, heartbeatAt: since, dead }: SilentNode): Trouble {
  const held = lanes === 1 ? "one lane" : `${lanes} lanes`;
  const what = dead
    ? `is gone, and no living node takes its ${held}: start one that holds the keys and reaches the chain.`
    : `has not renewed its heartbeat, and no other node has taken its ${held} yet.`;
  const actions = offersFor({}, ["LOOK_AT_NODES"]);
  return trouble("NODE_LOST", { sentence: `Node ${nodeId} ${what}`, since, nodeId, actions }, instanceId);
}

export function ofNotice(notice: Notice): Trouble {
  const { noticeId, lane, nodeId, firstSeenAt: since, times, evidence } = notice;
  const id = `notice:${noticeId}`;
  const [newest] = evidence;
  const often = times === 1 ? "" : ` It happened ${times} times.`;
  const target = { ...lane, notice: { noticeId, times } };
  if (lane === null) {
    const { lanes = 0, why = "" } = newest ?? {};
    const held = lanes === 0 ? "no lanes" : lanes === 1 ? "one lane" : `${lanes} lanes`;
    const sentence = `Node ${nodeId} vanished without draining: ${EVIDENCE[why] ?? "its end was noticed"}, and it held ${held}.${often} Find out why it ended; this is over when it is back.`;
    const actions = offersFor(target, ["ACKNOWLEDGE", "LOOK_AT_NODES"]);
    return trouble("NODE_VANISHED", { id, sentence, since, nodeId, actions });
  }
  // Another program used the signer's key, which may be stolen. This is the most severe trouble, and it does not end by
  // itself.
  const sentence = `Another program used the key of this signer: ${usedBy(newest)}.${often} If nobody here did it, the key is stolen: stop the signer and move its funds.`;
  const about = { ...lane, since, nonce: newest?.nonce ?? null, txId: newest?.txId ?? null };
  const actions = offersFor(target, ["ACKNOWLEDGE", "SUSPEND_LANE", "STOP_SIGNER"]);
  return trouble("EXTERNAL_KEY_USE", { ...about, id, sentence, actions });
}

const EVIDENCE: Readonly<Record<string, string>> = {
  expired: "its heartbeat ran out",
  "stood-still": "its heartbeat stood still",
  "lock-gone": "its session with the database ended",
};

function usedBy(use: NoticeEvidence | undefined) {
  const { nonce = 0, through = nonce, txHash = null } = use ?? {};
  if (txHash !== null) return `nonce ${nonce} went to ${txHash}, which was not sent from here`;
  const nonces = through === nonce ? `nonce ${nonce}` : `nonces ${nonce} to ${through}`;
  return `the chain counts ${nonces}, which nothing that was sent from here has`;
}

const ENDPOINTS = {
  failing: ["RPC_ENDPOINT_DOWN", "does not answer, and is skipped until it answers a probe"],
  behind: ["RPC_BEHIND", "does not keep up with the others, and is skipped until it does"],
  foreign: ["RPC_WRONG_CHAIN", "serves another chain, and is not used"],
} as const satisfies Readonly<Record<string, readonly [TroubleCode, string]>>;

interface TroubledEndpoint {
  readonly chainId: number;
  /** Index of the endpoint in the configuration: two endpoints may have the same host. */
  readonly index: number;
  readonly url: string;
  readonly status: keyof typeof ENDPOINTS;
  readonly behind: number | null;
}

export function ofEndpoint({ chainId, index, url: endpoint, status, behind: blocks }: TroubledEndpoint): Trouble {
  const [code, what] = ENDPOINTS[status];
  const lag = status === "behind" && blocks !== null && blocks > 0 ? ` (${blocks} blocks)` : "";
  const sentence = `The endpoint ${endpoint} of chain ${chainId} ${what}${lag}.`;
  return trouble(code, { sentence, chainId, endpoint }, `${index}:${endpoint}`);
}

export function ofUnreachable(chainId: number, since: Date | null, waiting: number): Trouble {
  const sentence = `No endpoint of chain ${chainId} answers: nothing is sent there, and nothing decided.${behind(waiting)}`;
  return trouble("CHAIN_UNREACHABLE", { sentence, since, chainId, waiting });
}

/**
 * The text leaves out how long the stall has lasted, which `since` shows. A text that changes with time would be
 * written to the database again and again.
 */
export function ofStalled(
  { chainId, since, waiting }: { chainId: number; since: Date | null; waiting: number },
  head: number,
  usualMs: number | null,
): Trouble {
  const usual = usualMs === null ? "" : `, where one usually comes every ${Number((usualMs / 1_000).toPrecision(2))} s`;
  const sentence = `Chain ${chainId} stands still: its endpoints answer, and no block has come after ${head}${usual}. What is sent there is not mined, and nothing is decided.${behind(waiting)}`;
  return trouble("CHAIN_STALLED", { sentence, since, chainId, waiting });
}

export function ofDoubt(lane: Lane, reason: string, waiting: number): Trouble {
  const sentence = waitingFor(doubtText(reason), waiting);
  return trouble("CHAIN_DOUBTED", { ...lane, sentence, waiting, facts: { doubted: reason } });
}

/**
 * One row for each error code, not for each block: an endpoint with false data about one block usually has false data
 * about many.
 */
export function ofDisputes(
  chainId: number,
  disputes: readonly (Pick<Disputed, "code"> & { readonly number: number; readonly since: Date })[],
): readonly Trouble[] {
  return (["RPC_DISAGREES", "RPC_BEHIND"] as const).flatMap((code) => {
    const own = disputes.filter((each) => each.code === code);
    const [first] = own;
    if (first === undefined) return [];
    const blocks =
      own.length === 1 ? `block ${first.number}` : `${own.length} blocks, the first of them ${first.number}`;
    const sentence =
      code === "RPC_DISAGREES"
        ? `What the endpoints of chain ${chainId} say of ${blocks} cannot all be true, and decides nothing.`
        : `An endpoint of chain ${chainId} has not said for a minute what ${blocks} holds, and nothing is decided by it.`;
    return [trouble(code, { sentence, since: first.since, chainId })];
  });
}

export function ofPriceDispute(chainId: number, { answers, since }: Pick<Disputed, "answers" | "since">): Trouble {
  const sentence = `What the endpoints of chain ${chainId} say of the price of gas cannot all be true, and the lower price is offered first: ${answers.join("; ")}.`;
  return trouble("RPC_DISAGREES", { sentence, since, chainId }, "price");
}

/**
 * One row for the whole lane, not for each transaction: an endpoint that wrongly refuses one transaction usually
 * refuses many.
 */
export function ofRefused(lane: Lane, refusals: readonly UnconfirmedRefusal[]): readonly Trouble[] {
  const [first, ...others] = refusals.filter(({ waitsFor }) => waitsFor === "agreement");
  if (first === undefined) return [];
  const { txId, since, reason, firstBlock, waitsFor } = first;
  const more = others.length === 0 ? "" : ` So it is of ${others.length} more.`;
  const sentence = `An endpoint refuses a transaction that was accepted, and another does not: it waits until they agree (${reason}).${more}`;
  const facts = { refusal: { txId, reason, firstBlock, waitsFor, sinceMs: since.getTime() } };
  return [trouble("RPC_DISAGREES", { ...lane, sentence, since, txId, facts }, "refused")];
}

interface AwaySigner extends SignerAbsence {
  readonly lane: Lane;
  readonly waiting: number;
}

export function ofAway({ lane, since, reason, waiting, lies }: AwaySigner): Trouble {
  const sentence = waitingFor(awayText({ since, reason, lies }), waiting);
  const facts = { signerAway: { sinceMs: since.getTime(), reason, lies } };
  return trouble(lies ? "SIGNER_LIES" : "SIGNER_AWAY", { ...lane, sentence, since, waiting, facts });
}

/** A lane with open transactions or intents, and without a live owner. */
export interface UnownedLane {
  readonly lane: Lane;
  /** Number of its transactions that are not final, and of its intents, without those that wait for approval. */
  readonly open: number;
  /** Time at which the oldest of them was created. */
  readonly oldestAt: Date;
  /** The lane's last owner, if that node ended without releasing the lane; else null. */
  readonly nodeId: string | null;
  /** Last heartbeat of that owner, else of any node that held the lane's key; null if none is stored. */
  readonly heldAt: Date | null;
}

export function ofUnowned({ lane, open: waiting, nodeId }: UnownedLane, { since, reason }: Away): Trouble {
  const sentence = waitingFor(unownedText(reason), waiting);
  const actions = offersFor({}, ["LOOK_AT_NODES"]);
  return trouble("LANE_UNOWNED", { ...lane, sentence, since, waiting, nodeId, actions, facts: { unowned: reason } });
}

/**
 * Row of the attention list: an endpoint reports a higher transaction count of the signer than the lane has given
 * nonces, and the endpoints do not agree on that count yet.
 */
export function ofDrift(lane: Lane, { count, since }: { count: number; since: Date }, cursor: number): Trouble {
  const sentence = `An endpoint counts ${count} transactions of this signer, ${cursor} were given out here, and the endpoints do not agree on it: creates are refused until they do.`;
  return trouble("NONCE_DRIFT", { ...lane, sentence, since });
}

export function ofBalance(lane: Lane, balance: bigint, threshold: bigint): Trouble {
  const sentence = `The signer holds ${ether(balance)}, less than the ${ether(threshold)} that was set as the least.`;
  return trouble("LOW_BALANCE", { ...lane, sentence });
}

interface Watched {
  readonly lane: Lane;
  readonly head: { readonly txId: string; readonly nonce: number; readonly createdAt: Date } | null;
  readonly oldestAt: Date | null;
  readonly waiting: number;
}

/**
 * Row of the attention list for an open alert about a lane: it has too many open transactions, or its oldest one is too
 * old.
 */
export function ofWatch(code: TroubleCode, { lane, head, oldestAt, waiting }: Watched): Trouble {
  const about = { ...lane, waiting };
  if (code === "PENDING_DEEP") {
    const sentence = `More transactions of this signer are not mined than was set as the most: ${waiting + 1}.`;
    return trouble(code, { ...about, sentence });
  }
  if (code === "PENDING_OLD" || head === null) {
    const sentence = `The oldest transaction of this signer that is not final is older than was set as the most.${behind(waiting)}`;
    return trouble(code, { ...about, sentence, since: oldestAt });
  }
  const { txId, nonce, createdAt: since } = head;
  const sentence = `Nonce ${nonce} has waited longer than was set as the most.${behind(waiting)}`;
  return trouble(code, { ...about, id: `tx:${txId}`, sentence, since, txId, nonce });
}

interface Dated {
  /** Time at which the transaction first became STUCK, otherwise the time of its last change. */
  readonly since: Date;
}

/** A lane with a trouble, such as a suspension, a STUCK transaction or a nonce gap. */
export interface TroubledLane {
  readonly lane: Lane;
  readonly suspendedBy: SuspendedBy | null;
  /** The last decision that an operator made about the lane; null if none is stored. */
  readonly decision: { readonly actor: string; readonly reason: string; readonly at: Date } | null;
  /** Number of the lane's transactions that have a nonce and are not final. */
  readonly open: number;
  /** The lane's lowest transaction that is not final; null: all are final. */
  readonly head: (Pick<LaneTransaction, "txId" | "nonce" | "state"> & Dated) | null;
  /** The lane's lowest nonce gap; null if there is none. */
  readonly hole: Pick<Hole, "nonce" | "detail" | "since"> | null;
}

export interface TroubledTransaction extends Pick<LedgerTransaction, "txId" | "nonce">, Dated {
  readonly lane: Lane;
  /** Number of the lane's transactions that have a nonce and are not final, including this one if it has a nonce. */
  readonly open: number;
  readonly facts?: ReportedFacts;
}

/** A kill that is in force. */
export interface KillInForce extends Kill {
  readonly at: Date;
}

/** An instance whose heartbeat has expired, and whose lanes no other node has acquired. */
export interface SilentNode {
  readonly nodeId: string;
  readonly instanceId: string;
  readonly lanes: number;
  readonly heartbeatAt: Date;
  /** True if other nodes have noticed that the instance is dead, but none of them acquires its lanes. */
  readonly dead: boolean;
}
