/**
 * Detour: a transaction that offers less than the last blocks took, or that a node called underpriced, is signed again
 * at the same nonce, for more.
 *
 * Reads: the fee market, the bytes of its newest payload. Writes: another attempt (another-attempt.ts). Invariants: I3
 * (same nonce, same payload), I6; an offer rises over everything a node has taken, and never above the ceiling.
 * A crash leaves what another-attempt.ts leaves; the next owner sends the newest attempt and judges it by its answer.
 */
import { repricedKind, sendableAttempts } from "../../domain/attempts.ts";
import { bounded, type FeeLimit, limitInWords, repricingLimit } from "../../domain/ceilings.ts";
import type { FeeMarket, Fees } from "../../domain/fees.ts";
import { turnedTo } from "../../domain/pace/transaction-pace.ts";
import {
  covers,
  highestOffer,
  type Repricing,
  type RepricingStrategy,
  type RepricingView,
  reprice,
} from "../../domain/repricing.ts";
import type { Attempt } from "../../domain/transaction.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { happened } from "../lane/happened.ts";
import { hold } from "../lane/hold.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { decodedNewest, rebuildable, type StoredBytes } from "../lane/stored-bytes.ts";
import type { Tracked } from "../lane/tracked.ts";
import { type AnotherAttemptPorts, type AnotherPayload, signAnother } from "./another-attempt.ts";

export interface RepricePorts extends AnotherAttemptPorts, StoredBytes {}

/** "signed": another attempt is on its way. "kept": what stands is to be sent again as it is. */
export type RepriceFate = "signed" | "kept";

interface Work {
  readonly context: ChainContext;
  readonly lane: OwnedLane;
  readonly tx: Tracked;
}

export async function repriceIfBelow(ports: RepricePorts, work: Work): Promise<RepriceFate> {
  const strategy = work.context.settings.repricing;
  const market = strategy === null ? null : await work.lane.term.during(marketNow(work.context));
  const view = market === null ? null : viewOf(work.tx, market);
  if (strategy === null || view === null) return "kept";
  const limit = await work.lane.term.during(limitOf(ports, work, view));
  const verdict = judge(ports, work, { strategy, view, limit });
  if (verdict.verdict !== "reprice") return "kept";
  const known = sendableAttempts(work.tx.attempts).find(({ fees }) => covers(fees, verdict.fees));
  if (known !== undefined) return sendKnown(work.tx, known);
  return maySign(ports, work) ? signAt(ports, work, verdict.fees) : "kept";
}

/** Null: nobody can say what blocks take now, so nothing is said about this offer either. */
async function marketNow(context: ChainContext): Promise<FeeMarket | null> {
  try {
    return await context.feeMarket();
  } catch (error) {
    if (error instanceof ChainUnavailable) return null;
    throw error;
  }
}

/** What was taken, or refused for its price, is what a new offer must beat, superseded payloads included: a pool may hold them. */
function viewOf(tx: Tracked, market: FeeMarket): RepricingView | null {
  const ours = tx.attempts.filter(({ kind, foreign }) => kind !== "external" && foreign !== true);
  const refused = tx.pace.answer === "underpriced";
  const through = Math.max(tx.acceptedOrdinal ?? 0, refused ? (tx.pace.sendOrdinal ?? 0) : 0);
  const standing = highestOffer(ours.filter(({ ordinal }) => ordinal <= through));
  const first = ours[0]?.fees;
  if (standing === null || first === undefined) return null;
  return { first, standing, refused, market, attempts: tx.attempts.length };
}

/** What the payload moves counts only where somebody bounds it: else its bytes need not be read for this. */
async function limitOf(ports: RepricePorts, { context, tx }: Work, { first }: RepricingView): Promise<FeeLimit> {
  const { ceilings } = context;
  const newest = sendableAttempts(tx.attempts).at(-1);
  const standing = ceilings.cost === null ? null : await decodedNewest(ports, tx);
  const content = { gas: newest?.gas ?? 0n, value: standing?.unsigned.value ?? 0n };
  return repricingLimit(ceilings, content, first);
}

interface Judging {
  readonly strategy: RepricingStrategy;
  readonly view: RepricingView;
  readonly limit: FeeLimit;
}

function judge(ports: RepricePorts, { lane, tx }: Work, { strategy, view, limit }: Judging): Repricing {
  const verdict = reprice(strategy, view, limit.most);
  if (verdict.verdict === "ceiling" || (verdict.verdict === "reprice" && verdict.reached)) {
    const text = `its fee has reached ${limitInWords(limit)}, and more is wanted`;
    hold(ports, { lane, tx }, { code: "FEE_CEILING_REACHED", text });
  } else tx.facts.delete("FEE_CEILING_REACHED");
  return verdict;
}

/** The same offer was signed before and not taken for another reason (funds, say): those very bytes, not others like them. */
function sendKnown(tx: Tracked, { ordinal }: Attempt): RepriceFate {
  happened(tx, turnedTo, ordinal);
  return "kept";
}

function maySign(ports: RepricePorts, { context, lane, tx }: Work): boolean {
  const { maxAttempts } = context.settings;
  if (maxAttempts === 0 || tx.attempts.length < maxAttempts) return true;
  const text = `${tx.attempts.length} payloads were signed for it, which is all that is allowed`;
  hold(ports, { lane, tx }, { code: "MAX_ATTEMPTS_REACHED", text });
  return false;
}

async function signAt(ports: RepricePorts, { context, lane, tx }: Work, fees: Fees): Promise<RepriceFate> {
  const payload = await lane.term.during(payloadAt(ports, { context, lane, tx }, fees));
  if (payload === null) {
    hold(ports, { lane, tx }, { code: "CANNOT_RESIGN", text: "its payload cannot be signed again here" });
    return "kept";
  }
  const fate = tx.receipt === null ? await signAnother(ports, lane, { tx, payload }) : "mined";
  if (typeof fate === "string") {
    tx.facts.delete("POLICY_LIMIT_REACHED");
    return fate === "committed" ? "signed" : "kept";
  }
  hold(ports, { lane, tx }, { code: "POLICY_LIMIT_REACHED", text: `${fate.detail} (${fate.rule})` });
  return "kept";
}

/** The newest payload at another price: a cancel stays a cancel. Null: it says more than can be signed here. */
async function payloadAt(ports: RepricePorts, { context, tx }: Work, fees: Fees): Promise<AnotherPayload | null> {
  const over = tx.attempts.length;
  const decoded = await decodedNewest(ports, tx);
  const content = decoded === null ? null : rebuildable(decoded);
  if (content === null) return null;
  const unsigned = bounded(context.ceilings, { ...content, fees });
  const reason = tx.pace.answer === "underpriced" ? "a node called it underpriced" : "the last blocks took more";
  return { kind: repricedKind(tx.attempts), unsigned, over, about: "cost", reason };
}
