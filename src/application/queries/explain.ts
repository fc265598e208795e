/**
 * Collects the facts of an explanation: the database's view of the transaction and its lane, the chain's current state,
 * and what only the owner of the lane knows. Any node can answer; if a chain is unreachable, its facts are left out,
 * but the explanation is still returned.
 */
import { depthNeeded } from "../../domain/chain/finality.ts";
import { laneKey } from "../../domain/lane.ts";
import type { Forbidden } from "../../domain/policy/policy.ts";
import { range } from "../../domain/range.ts";
import { feeCap } from "../../domain/transaction/fees.ts";
import type { Receipt } from "../../domain/transaction/transaction.ts";
import { isSettled } from "../../domain/transaction/transitions.ts";
import { explain } from "../../domain/troubles/explain.ts";
import { GAS_OF_NOTHING } from "../../domain/troubles/possible.ts";
import type { ReportedFacts } from "../../domain/troubles/rows.ts";
import type {
  Asked,
  ExplainedChain,
  ExplainedTransaction,
  Explanation,
  Situation,
} from "../../domain/troubles/situation.ts";
import type { Block } from "../../ports/chain.ts";
import type { Spending } from "../../ports/lane-store.ts";
import type { HistoryRecord, TransactionRecord } from "../../ports/query-store.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { forbiddenBy } from "../lane/limits.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { type ExplainPorts, heldBetween, laneFacts } from "./explained-lane.ts";
import { silent } from "./silent.ts";
import { notFound } from "./transactions.ts";

/** Number of recent blocks that are searched for the "since block" of an explanation. */
const BLOCKS_BACK = 32;

/**
 * Explains why a transaction is not final yet. With `blockerByNonce`, only the nonce of the transaction that it waits
 * for is shown.
 */
export async function explanationOf(
  ports: ExplainPorts,
  txId: string,
  { blockerByNonce = false }: { readonly blockerByNonce?: boolean } = {},
): Promise<Explanation> {
  const record = await ports.store.transaction(txId);
  if (record === null) throw notFound(ports, `there is no transaction ${txId}`);
  const situation = await situationOf(ports, record);
  const explanation = blockerByNonce ? explain(situation) : await explainBehind(ports, record, situation);
  const pool = await ports.store.poolOf(record.txId);
  const chosen = pool === null ? [] : [`Its signer was chosen from the pool ${pool}.`];
  return { ...explanation, summary: [explanation.summary, ...(await inWords(ports, record)), ...chosen].join(" ") };
}

/** Longest call or error in a summary. The data of a call is chosen by whoever creates it. */
const LONGEST_WORDS = 300;

/** The caller's call, and the error that it reverted with, as far as an ABI has words for them. */
async function inWords({ abiBook, look }: ExplainPorts, record: TransactionRecord): Promise<readonly string[]> {
  const call = (await silent(abiBook?.calls()))?.(record);
  const isReverted = record.receipt?.status === "reverted";
  const shown = isReverted ? await silent(look?.(record)) : null;
  const named = shown && (await silent(abiBook?.look(shown, record)));
  const { name = null, message = null } = (named ?? shown)?.revert ?? {};
  const error = [name, message].filter((each) => each !== null && each !== "").join(": ");
  const args = call?.args.map((each) => `${each.name}: ${each.value}`).join(", ");
  return [
    ...(call === undefined ? [] : [`It calls ${cut(`${call.contract ?? "its receiver"}.${call.name}(${args})`)}.`]),
    ...(error === "" ? [] : [`It reverted with ${cut(error)}.`]),
  ];
}

function cut(text: string) {
  const plain = text.replace(/\p{Cc}/gu, " ");
  return plain.length > LONGEST_WORDS ? `${plain.slice(0, LONGEST_WORDS)}…` : plain;
}

/** Explains a transaction together with the one that it waits for. */
async function explainBehind(
  ports: ExplainPorts,
  record: TransactionRecord,
  situation: Situation,
): Promise<Explanation> {
  const { head } = situation.lane;
  const before = head === null ? null : await ports.store.transaction(head.txId);
  if (head === null || before === null) return explain(situation);
  const explanation = explain(situation, await situationOf(ports, before));
  if (explanation.help.some(({ code }) => code !== "WAIT")) return explanation;
  // The lane's lowest open transaction progresses by itself, but between it and the explained transaction is one that
  // is put on hold.
  const held = await heldBetween(ports, record, head.nonce);
  if (held === null || held.nonce === null) return explanation;
  const { txId, nonce, state } = held;
  const lane = { ...situation.lane, head: { txId, nonce, state, held: true } };
  return explain({ ...situation, lane }, await situationOf(ports, held));
}

async function situationOf(ports: ExplainPorts, record: TransactionRecord): Promise<Situation> {
  // Read the chain before the lease, because the chain may be slow: a lease that was read first could seem expired by
  // then.
  const context = ports.chains.get(record.lane.chainId);
  const owned = ports.lanesOf(record.lane.chainId).find(({ key }) => key === laneKey(record.lane));
  const [known, reported] = await Promise.all([
    chainFacts(context, record, { remembered: ports.remembered === true, owned }),
    reportedOf(ports, record, owned === undefined && !isSettled(record.state)),
  ]);
  const isOthers = owned === undefined && ports.remembered === true;
  const chain = {
    ...known,
    balance: isOthers ? reported.balance : known.balance,
    minedCount: known.minedCount ?? reported.minedCount,
    doubted: owned?.pace.distrust ?? reported.doubted,
  };
  const [history, lane] = await Promise.all([
    ports.store.history(record.txId),
    laneFacts(ports, record, { minedCount: chain.minedCount, settings: context?.settings ?? null }),
  ]);
  const [forbidden, forbiddenCancel] = await forbiddenNext(ports, record);
  const refusal = owned?.refusals.ofTransaction(record.txId) ?? reported.refusal;
  const transaction = { ...transactionFacts(record, history), forbidden, forbiddenCancel, refusal };
  const now = ports.clock.now();
  const signerAway = lane.signerAway ?? reported.signerAway;
  // `reachable` is about the node that owns the lane, not about this node: only the owner sends.
  const isActedFor = owned === undefined && lane.owner !== null && lane.owner.expiresAt > now;
  const reachable = isActedFor && known.known ? !reported.unreachableFrom.includes(lane.owner.nodeId) : known.reachable;
  return { now, transaction, lane: { ...lane, signerAway }, chain: { ...chain, reachable } };
}

/** Policy rules that forbid a higher price for the transaction, or a cancel. */
async function forbiddenNext(
  { limits }: ExplainPorts,
  record: TransactionRecord,
): Promise<readonly [more: Forbidden | null, cancel: Forbidden | null]> {
  const { lane, txId, payload, attempts, receipt } = record;
  const attempt = attempts.findLast((each) => each.foreign !== true);
  const isOver = attempt === undefined || receipt !== null || isSettled(record.state);
  if (!limits?.policies || isOver) return [null, null];
  const isEmpty = attempt.kind === "cancel" || attempt.kind === "placeholder";
  const use = await limits.use(lane, { txId });
  const judge = (gas: bigint, value: bigint, about: Spending["about"]): Forbidden | null => {
    // Nodes require at least a tenth more for a replacement.
    const gasCost = (gas * feeCap(attempt.fees) * 11n) / 10n;
    return forbiddenBy(limits, use, { to: null, data: "0x", value, gasCost, about });
  };
  const more = judge(attempt.gas, isEmpty ? 0n : payload.value, attempt.kind === "placeholder" ? attempt.kind : "cost");
  return [more, judge(GAS_OF_NOTHING, 0n, "cost")];
}

type Facts = Omit<ExplainedTransaction, "forbidden" | "forbiddenCancel" | "refusal">;

function transactionFacts(record: TransactionRecord, history: readonly HistoryRecord[]): Facts {
  const { payload, awaiting, validUntil = null, expiredAt = null, ...rest } = record;
  const led = history.findLast((step) => step.fromState !== step.state || step.reason !== null);
  const withdrawn = history.findLast(({ event }) => event === "withdraw" || event === "reorg" || event === "mine");
  const gone = withdrawn !== undefined && withdrawn.event !== "mine";
  const isOpen = record.receipt === null && !isSettled(record.state);
  return {
    ...rest,
    value: payload.value,
    awaiting: awaiting === undefined ? null : { ...awaiting, owner: record.owner },
    reason: led?.reason ?? null,
    since: led?.firstAt ?? record.updatedAt,
    withdrawn: gone && isOpen,
    validUntil,
    expiredAt,
    held: heldBy(record, history),
    asked: isOpen ? lastAsked(history) : null,
  };
}

function lastAsked(history: readonly HistoryRecord[]): Asked | null {
  const step = history.findLast(({ decision, event }) => decision !== undefined && event !== "hold");
  if (step?.decision === undefined) return null;
  const { event, lastAt: at, decision } = step;
  return { action: event === "decide" ? String(decision.audit?.action ?? event) : event, by: decision.actor, at };
}

function heldBy({ heldSince }: TransactionRecord, history: readonly HistoryRecord[]): Facts["held"] {
  if (heldSince === undefined) return null;
  const step = history.findLast(({ event }) => event === "hold");
  const [actor, reason] = [step?.decision?.actor ?? "somebody", step?.reason ?? "no reason was kept"];
  return { since: heldSince, actor, reason };
}

type Figures = Pick<ExplainedChain, "minedCount" | "balance" | "baseFee" | "dearSinceBlock" | "pooled" | "disputed">;

const NO_FIGURES: Figures = {
  minedCount: null,
  balance: null,
  baseFee: null,
  dearSinceBlock: null,
  pooled: null,
  disputed: null,
};

async function chainFacts(
  context: ChainContext | undefined,
  record: TransactionRecord,
  { remembered, owned }: { readonly remembered: boolean; readonly owned: OwnedLane | undefined },
): Promise<ExplainedChain> {
  const { chainId } = record.lane;
  if (context === undefined) return unknownChain(chainId);
  const { settings, follower } = context;
  return {
    chainId,
    remembered,
    known: true,
    reachable: context.reachable,
    unreachableSince: context.unreachableSince,
    head: follower.window.tip?.number ?? null,
    ...(remembered ? readBefore(context, record) : await readNow(context, record)),
    stalledSince: context.isStalled(owned === undefined ? [] : [owned]) ? context.headSince : null,
    finality: settings.finality,
    confirmations: settings.confirmations,
    inFlightWindow: settings.inFlightWindow,
    stuckAfterResubmits: settings.stuckAfterResubmits,
    ceilings: context.ceilings,
    doubted: null,
    privateEndpoints: context.chain.privateEndpoints,
  };
}

/**
 * Use the values that the loops read last, without a call to the chain, because the overview of all problems is
 * computed every second.
 */
function readBefore(context: ChainContext, { lane: { signer }, state, receipt }: TransactionRecord): Figures {
  if (isSettled(state)) return NO_FIGURES;
  if (receipt !== null) return { ...NO_FIGURES, disputed: context.disputes.about(receipt.blockHash) };
  return {
    ...NO_FIGURES,
    minedCount: context.counts.lastKnown(signer).latest,
    balance: context.knownBalances.get(signer) ?? null,
    baseFee: context.follower.head?.baseFeePerGas ?? null,
    disputed: pricesOf(context),
  };
}

async function readNow(context: ChainContext, record: TransactionRecord): Promise<Figures> {
  const { settings, chain, counts, follower } = context;
  const { lane, state, receipt, attempts } = record;
  if (isSettled(state)) return NO_FIGURES;
  if (receipt !== null) return { ...NO_FIGURES, disputed: await silent(disputeOver(context, receipt)) };
  const head = follower.window.tip?.number ?? null;
  const [mined, balance, blocks, pooled] = await Promise.all([
    silent(counts.mined(lane.signer, { atMostMs: settings.pollIntervalMs })),
    silent(context.balance(lane.signer)),
    head === null ? null : silent(chain.blocksByNumber(range(Math.max(0, head - BLOCKS_BACK + 1), head))),
    silent(isPooled(context, record)),
  ]);
  const fees = attempts.findLast((attempt) => attempt.foreign !== true)?.fees;
  return {
    minedCount: mined?.count ?? null,
    balance,
    baseFee: blocks?.at(-1)?.baseFeePerGas ?? null,
    dearSinceBlock: fees === undefined ? null : dearSince(blocks ?? [], feeCap(fees)),
    pooled,
    disputed: pricesOf(context),
  };
}

function pricesOf({ disputes: { prices } }: ChainContext): ExplainedChain["disputed"] {
  return prices && { code: "RPC_DISAGREES", ...prices };
}

/**
 * The block since which the base fee has exceeded the cap without interruption. Null if that began before the given
 * blocks.
 */
function dearSince(blocks: readonly (Block | null)[], cap: bigint) {
  const affordable = blocks.findLastIndex((block) => block !== null && (block.baseFeePerGas ?? 0n) <= cap);
  const first = blocks[affordable + 1]?.number ?? null;
  return affordable >= 0 || first === 0 ? first : null;
}

/**
 * Whether endpoints disagree about the receipt's block. If this node owns the lane, it has already recorded that.
 * Otherwise it queries the endpoints now, if the receipt is deep enough to be decided.
 */
async function disputeOver(context: ChainContext, receipt: Receipt): Promise<ExplainedChain["disputed"]> {
  const { blockNumber: number, blockHash: hash, txHash } = receipt;
  const known = context.disputes.about(hash);
  if (known !== null) return known;
  const depth = depthNeeded(context.settings);
  if ((context.follower.window.tip?.number ?? 0) - number < depth) return null;
  const [verdict] = await context.chain.settleReceipts({ number, hash }, [{ txHash }], depth);
  return verdict?.kind === "disagree" ? { code: "RPC_DISAGREES", answers: verdict.answers, since: null } : null;
}

/** True if the transaction is in the mempool; null if it was never sent, or the endpoint does not list its mempool. */
async function isPooled(context: ChainContext, record: TransactionRecord) {
  if (record.nonce === null || record.lastSubmittedAt === null) return null;
  const answer = await context.chain.pooled(record.lane.signer, [record.nonce]);
  const hash = answer?.[0];
  return answer === null ? null : record.attempts.some(({ txHash }) => txHash === hash);
}

function unknownChain(chainId: number): ExplainedChain {
  return {
    ...NO_FIGURES,
    chainId,
    known: false,
    reachable: false,
    unreachableSince: null,
    head: null,
    ceilings: null,
    finality: "confirmations",
    confirmations: 0,
    inFlightWindow: 0,
    stuckAfterResubmits: 0,
    stalledSince: null,
    doubted: null,
    privateEndpoints: [],
  };
}

/** Facts that only the lane's owner has, from its last report. If `isAsked` is false, the report is not read. */
async function reportedOf(
  { store }: ExplainPorts,
  { lane: { chainId, signer }, txId }: Pick<TransactionRecord, "lane" | "txId">,
  isAsked: boolean,
) {
  const reports = (isAsked && (await silent(store.reports()))) || [];
  const rows = reports.flatMap(({ findings }) => findings.filter((row) => row.chainId === chainId));
  const facts: ReportedFacts = Object.assign({}, ...rows.map((row) => (row.signer === signer ? row.facts : {})));
  const { signerAway: away, refusal, doubted = null, balance, minedCount = null } = facts;
  return {
    doubted,
    minedCount,
    balance: balance === undefined ? null : BigInt(balance),
    signerAway: away ? { reason: away.reason, since: new Date(away.sinceMs), lies: away.lies === true } : null,
    refusal: refusal?.txId === txId ? { ...refusal, since: new Date(refusal.sinceMs) } : null,
    // Nodes that cannot reach the chain.
    unreachableFrom: rows.flatMap(({ code, nodeId }) => (code === "CHAIN_UNREACHABLE" ? [nodeId] : [])),
  };
}
