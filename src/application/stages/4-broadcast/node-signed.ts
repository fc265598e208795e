/**
 * Stage 4 for keys that the chain node holds: it is handed the payload and signs by itself (`eth_sendTransaction`). One at
 * a time, in nonce order, because an answer that is lost leaves no hash to look for; then everything behind it waits.
 *
 * Reads: payloads. Writes: the hash that the node answered with, or that its answer was lost (gray-zone.ts).
 * Invariants: I6 (payload, nonce and fees are committed and claimed before the node hears of them), I7.
 * A crash after sending leaves TRACKING/PENDING without a hash: the next owner looks for it before it sends anything.
 */
import { isStarted, isTaken } from "../../../domain/chain/answers.ts";
import type { Hash } from "../../../domain/lane.ts";
import { scheduled } from "../../../domain/pace/transaction-pace.ts";
import { at, NEVER } from "../../../domain/pace/when.ts";
import { isPrivate } from "../../../domain/transaction/attempts.ts";
import type { Attempt, SignedAttempt, UnsignedTransaction } from "../../../domain/transaction/transaction.ts";
import type { NodeSubmission } from "../../../ports/chain.ts";
import type { StoredPayload } from "../../../ports/lane-store.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, type Planned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { happened, isHeldBack, type Tracked } from "../../lane/tracked.ts";
import { isOutOfSight, loseSight } from "./gray-zone.ts";
import { type Answered, note, planAnswer } from "./note-answer.ts";
import { permission } from "./permission.ts";
import { claimAgain } from "./resubmit.ts";

/** What waits behind a payload that is out of sight looks again after this. */
const BEHIND_MS = 1_000;

export function isNodeSigned(tx: Tracked): boolean {
  return toSend(tx)?.nodeSigned === true;
}

export async function sendThroughNode(
  ports: LanePorts,
  context: ChainContext,
  lane: OwnedLane,
  due: readonly Tracked[],
): Promise<void> {
  for (const tx of due) {
    if (tx.receipt === null && !isHeldBack(tx) && !lane.held) await sendOne(ports, context, lane, tx);
  }
}

async function sendOne(ports: LanePorts, context: ChainContext, lane: OwnedLane, tx: Tracked): Promise<void> {
  if (isOutOfSight(tx) && tx.pace.answer === null) {
    happened(tx, scheduled, NEVER);
    return;
  }
  if (mayHaveBeenSent(tx)) {
    return loseSight(ports, lane, tx, "an earlier owner may have had it sent, and knew no hash");
  }
  if (isBehind(lane, tx)) {
    happened(tx, scheduled, at(ports.clock.monotonicMs() + BEHIND_MS));
    return;
  }
  await claimAgain(ports, { lane, context }, [tx]);
  const [stored] = await lane.term.during(ports.store.loadPayloads([tx.txId]));
  if (stored === undefined || tx.receipt !== null || isHeldBack(tx)) return;
  const unsigned = unsignedOf(lane, tx, stored);
  const result = await lane.term.send((mayLeave) =>
    context.chain.sendUnsigned(lane.lane.signer, unsigned, permission(lane, tx, mayLeave), {
      privately: isPrivate(tx.attempts),
    }),
  );
  await ports.failpoint("broadcast.sent");
  // The node was asked for nothing. The claim stays: this term sends under it later, another one looks for it first.
  if (!isStarted(result)) return;
  return conclude(ports, context, { lane, tx, result });
}

/** Claimed in an earlier term, and never named: whether the node heard of it is not known here. */
function mayHaveBeenSent(tx: Tracked): boolean {
  return toSend(tx)?.txHash === null && !tx.pace.claimed && tx.pace.answer === null;
}

function isBehind(lane: OwnedLane, { nonce }: Tracked): boolean {
  return [...lane.unmined.values()].some((other) => other.nonce < nonce && isOutOfSight(other));
}

function toSend({ attempts, pace }: Tracked): Attempt | undefined {
  return attempts.find(({ ordinal }) => ordinal === pace.sendOrdinal);
}

function unsignedOf({ lane }: OwnedLane, tx: Tracked, { payload }: StoredPayload): UnsignedTransaction {
  const { gas, fees } = toSend(tx) as Attempt;
  const { to, data, value, accessList = [] } = payload;
  return { chainId: lane.chainId, nonce: tx.nonce, to, data, value, gas, fees, accessList };
}

interface Concluded extends Answered {
  readonly result: NodeSubmission;
}

async function conclude(ports: LanePorts, context: ChainContext, { lane, tx, result }: Concluded): Promise<void> {
  const { txHash, ...said } = result;
  const sent = toSend(tx) as Attempt;
  note(ports, context, { lane, tx, result: said });
  const unnamed = sent.txHash === null && txHash === null;
  if (unnamed && (isTaken(said.answer) || said.answer === "nonceConsumed" || said.answer === "unknown")) {
    const why = `the node said no hash: ${said.answer}${said.detail === null ? "" : `: ${said.detail}`}`;
    return loseSight(ports, lane, tx, why);
  }
  const planned = planNamed({ lane, tx, result: said }, sent, txHash);
  if (planned.length > 0) await commitPlanned(ports, lane, planned);
  await ports.failpoint("broadcast.committed");
}

/** A node that signed the same payload in other bytes than before has made another attempt of it. */
function planNamed(answered: Answered, sent: Attempt, txHash: Hash | null): readonly Planned[] {
  const { lane, tx } = answered;
  if (txHash === null || txHash === sent.txHash || tx.receipt !== null) return planAnswer(answered);
  const planned = [...planAnswer(answered, sent.txHash === null ? { ordinal: sent.ordinal, txHash } : undefined)];
  if (sent.txHash !== null) {
    const again: SignedAttempt = { ...sent, ordinal: tx.attempts.length + 1, txHash, rawTransaction: null };
    // It was sent: that it is known here does not depend on who holds it back by now.
    const claim = { ordinal: again.ordinal };
    planned.push(plan(tx, "resubmit", { attempt: again, claim, ...(tx.held && { ordered: true }) }));
  }
  lane.follow(tx);
  return planned;
}
