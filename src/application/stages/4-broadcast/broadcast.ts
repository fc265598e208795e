/**
 * Stage 4: sends payloads, in nonce order, after each is stored together with its claim (the right to send it), and
 * commits the node's answers. If the chain node holds the key, it gets the payload, signs it and sends it.
 *
 * Reads: the lane's open transactions in memory, the bytes or payloads of their attempts. Writes: a claim by this owner
 * before an attempt is sent again; the answer (TRACKING/BROADCAST, or the node's error text); the hash that a signing
 * node reports. Invariants: I6 (only claimed attempts are sent), I1 and I2 (`permission`: nothing leaves after the
 * deadline or a hand-over), I7 (an unknown answer decides nothing; the send is repeated, with back-off). A crash after
 * sending leaves TRACKING/PENDING: the next owner looks for a receipt, claims again and sends again, which a node
 * answers with "already known". A transaction that a node may have signed although its answer was lost is looked for
 * first (note-answer.ts).
 */
import { isStarted, isTaken, type NotStarted, type SubmitResult } from "../../../domain/chain/answers.ts";
import type { Hash, Hex } from "../../../domain/lane.ts";
import { bytesRead, claimed, laidDown, scheduled, takenInHand } from "../../../domain/pace/transaction-pace.ts";
import { at, NEVER } from "../../../domain/pace/when.ts";
import { isPrivate } from "../../../domain/transaction/attempts.ts";
import type { Attempt, SignedAttempt } from "../../../domain/transaction/transaction.ts";
import type { MayLeave, NodeSubmission } from "../../../ports/chain.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { LaneWork } from "../../chain/work-ports.ts";
import type { Working } from "../../lane/activity.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, type Planned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { quietly } from "../../lane/term.ts";
import { happened, isHeldBack, type Tracked } from "../../lane/tracked.ts";
import { type Answered, inWords, isOutOfSight, loseSight, note, planAnswer, toSend } from "./note-answer.ts";

const AT_ONCE = 100;

/** Sends all transactions that are to be sent now. Returns when none is left, or when nothing may be sent. */
export function broadcast(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  const work = { ports, context, lane };
  const due = dueNow(work);
  return due.length === 0 ? null : sendDue(work, due);
}

function dueNow({ ports, lane }: LaneWork) {
  return lane.unmined.size === 0 || lane.held ? [] : lane.toSend(ports.clock.monotonicMs(), AT_ONCE);
}

async function sendDue(work: LaneWork, first: readonly Tracked[]) {
  for (let due = first; due.length > 0; due = dueNow(work)) {
    for (const tx of due) happened(tx, takenInHand);
    try {
      const atNode = due.filter(isNodeSigned);
      const local = atNode.length === 0 ? due : due.filter((tx) => !isNodeSigned(tx));
      if (!local.every(({ pace }) => pace.claimed)) await claimAgain(work, local);
      // Private transactions are sent only to private endpoints, so they never share a request with others.
      const hidden = local.filter(({ attempts }) => isPrivate(attempts));
      await sendAll(work, hidden.length === 0 ? local : local.filter(({ attempts }) => !isPrivate(attempts)));
      if (hidden.length > 0) await sendAll(work, hidden);
      for (const tx of atNode) {
        if (tx.receipt === null && !isHeldBack(tx) && !work.lane.held) await sendThroughNode(work, tx);
      }
    } finally {
      for (const tx of due) happened(tx, laidDown);
    }
  }
}

async function sendAll(work: LaneWork, due: readonly Tracked[]) {
  // Some transactions may have been mined, withdrawn or put on hold while the right to send them was being committed:
  // send the rest, in order.
  const sendable = due.filter((tx) => tx.receipt === null && tx.pace.rawTransaction !== null && !isHeldBack(tx));
  if (sendable.length === 0) return;
  const { ports, context, lane } = work;
  const everywhere = context.settings.broadcastToAll || sendable.some(wasTaken);
  const results = await lane.term.send((mayLeave) => {
    const sends = sendable.map((tx) => {
      return { raw: tx.pace.rawTransaction as Hex, mayLeave: permission(lane, tx, mayLeave) };
    });
    const privately = sendable.every(({ attempts }) => isPrivate(attempts));
    return context.chain.submit(sends, { everywhere, privately });
  });
  await ports.failpoint("broadcast.sent");
  const planned = sendable.flatMap((tx, index) => {
    const result = results[index] as SubmitResult | NotStarted;
    // The bytes were not sent: the stored right to send them stays unused, and the transaction is still to be sent.
    if (!isStarted(result)) return [];
    const answered = { ports, context, lane, tx, result };
    note(answered);
    return planAnswer(answered);
  });
  if (planned.length > 0) void quietly(commitAnswers(work, planned));
}

/**
 * True if a node accepted exactly these bytes before and they are to be sent again. The node may have dropped them, and
 * might drop them again.
 */
function wasTaken({ acceptedOrdinal, pace }: Tracked) {
  return acceptedOrdinal !== null && acceptedOrdinal === pace.sendOrdinal;
}

/**
 * The next send need not wait for this commit: the writer keeps the order within the lane, and a failure reloads the
 * lane.
 */
async function commitAnswers({ ports, lane }: LaneWork, planned: readonly Planned[]) {
  if (planned.length > 0) await commitPlanned(ports, lane, planned);
  await ports.failpoint("broadcast.committed");
}

/**
 * Checks whether the bytes of one attempt may still be sent. The check runs when they are handed to a connected socket.
 * A kill, suspend, hold, hand-over, the lease deadline or a lost session lock stops the send at that point, however
 * long it has waited for a connection. `term`: the part of the check that the lane's term makes (term.ts).
 */
function permission(lane: OwnedLane, tx: Tracked, term: MayLeave): MayLeave {
  const { sendOrdinal } = tx.pace;
  const isWanted = () =>
    lane.unmined.get(tx.nonce) === tx && tx.receipt === null && tx.pace.sendOrdinal === sendOrdinal;
  return () => term() && !lane.held && !isHeldBack(tx) && isWanted();
}

/**
 * Stores, for this owner, the right to send these attempts. Afterwards each may be sent and has its bytes in memory,
 * except those whose transaction was put on hold meanwhile.
 */
async function claimAgain(work: LaneWork, transactions: readonly Tracked[]) {
  const { ports, lane } = work;
  const unclaimed = transactions.filter((tx) => !tx.pace.claimed);
  if (unclaimed.length === 0) return;
  await lane.term.during(fetchBytes(ports, unclaimed));
  const wanted = unclaimed.filter((tx) => !isHeldBack(tx));
  const planned = wanted.map((tx) => {
    const claim = { ordinal: tx.pace.sendOrdinal as number };
    const due = disclosesNow(work, tx) ? DISCLOSED : {};
    return plan(tx, "resubmit", tx.held ? { claim, sendRequested: true, ...due } : { claim, ...due });
  });
  await commitPlanned(ports, lane, planned);
  // A receipt that came and was withdrawn meanwhile has dropped the bytes from memory. Without them the transaction is
  // not claimed, so that its bytes are read again.
  for (const tx of wanted) if (tx.pace.rawTransaction !== null || isNodeSigned(tx)) happened(tx, claimed);
  await ports.failpoint("resubmit.claimed");
}

const DISCLOSED = { disclosed: true, reason: "publicAfter is over: public endpoints are given it too" } as const;

/**
 * True if a private transaction was sent to the private endpoints so long ago that the settings now allow public ones.
 */
function disclosesNow({ ports, context }: LaneWork, { attempts, firstSentAt }: Tracked) {
  const { publicAfterMs } = context.settings;
  if (publicAfterMs === null || firstSentAt === null || !isPrivate(attempts)) return false;
  return ports.clock.now().getTime() - firstSentAt.getTime() >= publicAfterMs;
}

/**
 * Reads missing bytes from the database. A transaction that the chain node signs is stored as a payload instead, which
 * is read when it is sent.
 */
async function fetchBytes({ store }: LanePorts, transactions: readonly Tracked[]) {
  const missing = transactions.filter((tx) => tx.pace.rawTransaction === null && !isNodeSigned(tx));
  if (missing.length === 0) return;
  const found = await store.loadRawTransactions(
    missing.map(({ txId, pace }) => ({ txId, ordinal: pace.sendOrdinal as number })),
  );
  for (const [index, tx] of missing.entries()) happened(tx, bytesRead, found[index] ?? null);
}

/**
 * Interval after which a transaction is checked again while it waits for a lower nonce whose transaction has an unknown
 * hash.
 */
const BEHIND_MS = 1_000;

function isNodeSigned(tx: Tracked) {
  return toSend(tx)?.nodeSigned === true;
}

/**
 * Sends through a chain node that holds the key and signs (`eth_sendTransaction`). Sends one transaction at a time, in
 * nonce order. If an answer is lost, there is no hash to look for, and all later transactions wait.
 */
async function sendThroughNode(work: LaneWork, tx: Tracked) {
  const { ports, context, lane } = work;
  if (isOutOfSight(tx) && tx.pace.answer === null) {
    happened(tx, scheduled, NEVER);
    return;
  }
  if (mayHaveBeenSent(tx)) {
    return loseSight(work, tx, "an earlier owner may have had it sent, and knew no hash");
  }
  if (isBehind(lane, tx)) {
    happened(tx, scheduled, at(ports.clock.monotonicMs() + BEHIND_MS));
    return;
  }
  await claimAgain(work, [tx]);
  const [stored] = await lane.term.during(ports.store.loadPayloads([tx.txId]));
  if (stored === undefined || tx.receipt !== null || isHeldBack(tx)) return;
  const { signer, chainId } = lane.lane;
  const { gas, fees } = toSend(tx) as Attempt;
  const { to, data, value, accessList = [] } = stored.payload;
  const unsigned = { chainId, nonce: tx.nonce, to, data, value, gas, fees, accessList };
  const privately = isPrivate(tx.attempts);
  const result = await lane.term.send((mayLeave) =>
    context.chain.sendUnsigned(signer, unsigned, permission(lane, tx, mayLeave), { privately }),
  );
  await ports.failpoint("broadcast.sent");
  // If the send was not started, nothing reached the node, but the claim (the stored right to send) remains. This owner
  // can still send under it; the next owner must first look for the transaction, because it cannot know that nothing
  // was sent.
  if (isStarted(result)) await conclude(work, tx, result);
}

/**
 * True if an earlier owner claimed the right to send the transaction and no hash is known: the node may or may not have
 * received it.
 */
function mayHaveBeenSent(tx: Tracked) {
  return toSend(tx)?.txHash === null && !tx.pace.claimed && tx.pace.answer === null;
}

function isBehind(lane: OwnedLane, { nonce }: Tracked) {
  return [...lane.unmined.values()].some((other) => other.nonce < nonce && isOutOfSight(other));
}

async function conclude(work: LaneWork, tx: Tracked, { txHash, ...result }: NodeSubmission) {
  const sent = toSend(tx) as Attempt;
  const answered = { ...work, tx, result };
  note(answered);
  const { answer } = result;
  const unnamed = sent.txHash === null && txHash === null;
  if (unnamed && (isTaken(answer) || answer === "nonceConsumed" || answer === "unknown")) {
    return loseSight(work, tx, `the node said no hash: ${inWords(result)}`);
  }
  await commitAnswers(work, planNamed(answered, sent, txHash));
}

/**
 * Plans the writes after a node that signs itself reported a hash. If it signed the same payload again with different
 * bytes, those are recorded as another attempt.
 */
function planNamed(answered: Answered, sent: Attempt, txHash: Hash | null) {
  const { lane, tx } = answered;
  if (txHash === null || txHash === sent.txHash || tx.receipt !== null) return planAnswer(answered);
  const planned = [...planAnswer(answered, sent.txHash === null ? { ordinal: sent.ordinal, txHash } : undefined)];
  if (sent.txHash !== null) {
    const again: SignedAttempt = { ...sent, ordinal: tx.attempts.length + 1, txHash, rawTransaction: null };
    // The attempt was sent, so it must be recorded even if the transaction was put on hold meanwhile.
    const claim = { ordinal: again.ordinal };
    planned.push(plan(tx, "resubmit", { attempt: again, claim, ...(tx.held && { sendRequested: true }) }));
  }
  lane.follow(tx);
  return planned;
}
