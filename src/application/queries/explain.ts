/**
 * Collects what an explanation is drawn from: the database's view of the transaction and its lane, and what the chain
 * says now. Any node can answer; a chain that is away leaves facts out, never the answer.
 */
import { explain } from "../../domain/explain/explain.ts";
import { GAS_OF_NOTHING } from "../../domain/explain/possible.ts";
import type { ExplainedChain, ExplainedTransaction, Explanation, Situation } from "../../domain/explain/situation.ts";
import { feeCap } from "../../domain/fees.ts";
import { depthNeeded } from "../../domain/finality.ts";
import { laneKey } from "../../domain/lane.ts";
import type { Forbidden } from "../../domain/policy/policy.ts";
import { range } from "../../domain/range.ts";
import { isSettled } from "../../domain/transitions.ts";
import type { Block } from "../../ports/chain.ts";
import type { Spending } from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { HistoryRecord, TransactionRecord } from "../../ports/query-store.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { foreseenBy, type LimitPorts } from "../lane/limits.ts";
import { heldBetween, type LaneFactPorts, laneFacts } from "./explained-lane.ts";
import { silent } from "./silent.ts";
import { type KeepsFor, notFound } from "./transactions.ts";

export interface ExplainPorts extends LaneFactPorts, KeepsFor, Pick<Ports, "clock"> {
  readonly chains: ReadonlyMap<number, ChainContext>;
}

export interface ExplainOptions {
  /** Whoever asks may not be told more of the transaction in its way than its nonce. */
  readonly blockerByNonce?: boolean;
}

/** How far back "since block" looks. */
const BLOCKS_BACK = 32;

export async function explainTransaction(
  ports: ExplainPorts,
  txId: string,
  { blockerByNonce = false }: ExplainOptions = {},
): Promise<Explanation> {
  const record = await ports.store.transaction(txId);
  if (record === null) throw notFound(ports, `there is no transaction ${txId}`);
  const situation = await situationOf(ports, record);
  const explanation = blockerByNonce ? explain(situation) : await explainBehind(ports, record, situation);
  const pool = await ports.store.poolOf(record.txId);
  if (pool === null) return explanation;
  return { ...explanation, summary: `${explanation.summary} Its signer was chosen from the pool ${pool}.` };
}

/** With what is known of the one that it waits for. */
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
  // The head goes on by itself; not so what is held back behind it.
  const held = await heldBetween(ports, record, head.nonce);
  if (held === null || held.nonce === null) return explanation;
  const { txId, nonce, state } = held;
  const lane = { ...situation.lane, head: { txId, nonce, state, held: true } };
  return explain({ ...situation, lane }, await situationOf(ports, held));
}

async function situationOf(ports: ExplainPorts, record: TransactionRecord): Promise<Situation> {
  // The chain first, for it may take its time: a lease that was read before would seem to have ended meanwhile.
  const context = ports.chains.get(record.lane.chainId);
  const chain = await chainFacts(context, record);
  const [history, lane] = await Promise.all([
    ports.store.history(record.txId),
    laneFacts(ports, record, { minedCount: chain.minedCount, settings: context?.settings ?? null }),
  ]);
  const [forbidden, forbiddenCancel] = await forbiddenNext(ports, record);
  const owned = ports.lanesOf(record.lane.chainId).find(({ key }) => key === laneKey(record.lane));
  const refusal = owned?.refusals.ofTransaction(record.txId) ?? null;
  const transaction = { ...transactionFacts(record, history), forbidden, forbiddenCancel, refusal };
  const doubted = owned?.pace.distrust ?? null;
  return { now: ports.clock.now(), transaction, lane, chain: { ...chain, doubted } };
}

/** Which rules of policies are against more for what stands, and against a cancel. */
async function forbiddenNext(
  { limits }: LimitPorts,
  record: TransactionRecord,
): Promise<readonly [more: Forbidden | null, cancel: Forbidden | null]> {
  const { lane, txId, payload, attempts, receipt } = record;
  const attempt = attempts.findLast((each) => each.foreign !== true);
  const isOver = attempt === undefined || receipt !== null || isSettled(record.state);
  if (!limits?.policies || isOver) return [null, null];
  const isEmpty = attempt.kind === "cancel" || attempt.kind === "placeholder";
  const use = await limits.use(lane, { txId });
  const judge = (gas: bigint, value: bigint, about: Spending["about"]): Forbidden | null => {
    // A tenth more is the least that a node takes for a replacement.
    const gasCost = (gas * feeCap(attempt.fees) * 11n) / 10n;
    const verdict = foreseenBy(limits, use, { to: null, data: "0x", value, gasCost, about });
    return "forbidden" in verdict ? verdict.forbidden : null;
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
  return {
    ...rest,
    value: payload.value,
    awaiting: awaiting === undefined ? null : { ...awaiting, owner: record.owner },
    reason: led?.reason ?? null,
    since: led?.firstAt ?? record.updatedAt,
    withdrawn: gone && record.receipt === null && !isSettled(record.state),
    ...{ validUntil, expiredAt, held: heldBy(record, history) },
  };
}

function heldBy({ heldSince }: TransactionRecord, history: readonly HistoryRecord[]): Facts["held"] {
  if (heldSince === undefined) return null;
  const step = history.findLast(({ event }) => event === "hold");
  const [actor, reason] = [step?.decision?.actor ?? "somebody", step?.reason ?? "no reason was kept"];
  return { since: heldSince, actor, reason };
}

async function chainFacts(context: ChainContext | undefined, record: TransactionRecord): Promise<ExplainedChain> {
  const { chainId, signer } = record.lane;
  if (context === undefined) return unknownChain(chainId);
  const { settings, chain, counts, follower } = context;
  const head = follower.window.tip?.number ?? null;
  const isOpen = !isSettled(record.state) && record.receipt === null;
  const [mined, balance, blocks, pooled, disputed] = await Promise.all([
    isOpen ? silent(counts.mined(signer, { atMostMs: settings.pollIntervalMs })) : null,
    isOpen ? silent(context.balance(signer)) : null,
    isOpen && head !== null ? silent(chain.blocksByNumber(range(Math.max(0, head - BLOCKS_BACK + 1), head))) : null,
    isOpen ? silent(isPooled(context, record)) : null,
    isSettled(record.state) ? null : silent(disputeOver(context, record)),
  ]);
  const fees = record.attempts.findLast((attempt) => attempt.foreign !== true)?.fees;
  return {
    chainId,
    known: true,
    reachable: context.reachable,
    unreachableSince: context.unreachableSince,
    minedCount: mined?.count ?? null,
    head,
    balance,
    baseFee: blocks?.at(-1)?.baseFeePerGas ?? null,
    dearSinceBlock: fees === undefined ? null : dearSince(blocks ?? [], feeCap(fees)),
    pooled,
    finality: settings.finality,
    confirmations: settings.confirmations,
    inFlightWindow: settings.inFlightWindow,
    stuckAfterResubmits: settings.stuckAfterResubmits,
    ceilings: context.ceilings,
    doubted: null,
    disputed,
    privateEndpoints: context.chain.privateEndpoints,
  };
}

/** The first of the unbroken run of blocks, up to the newest, that asked for more than the cap. */
function dearSince(blocks: readonly (Block | null)[], cap: bigint): number | null {
  const affordable = blocks.findLastIndex((block) => block !== null && (block.baseFeePerGas ?? 0n) <= cap);
  return blocks[affordable + 1]?.number ?? null;
}

/** The lane's owner has asked already; any other node asks where the receipt is deep enough to have decided by now. */
async function disputeOver(context: ChainContext, { receipt }: TransactionRecord): Promise<ExplainedChain["disputed"]> {
  const { prices } = context.disputes;
  if (receipt === null) return prices && { code: "RPC_DISAGREES", ...prices };
  const { blockNumber: number, blockHash: hash, txHash } = receipt;
  const known = context.disputes.about(hash);
  if (known !== null) return known;
  const depth = depthNeeded(context.settings);
  if ((context.follower.window.tip?.number ?? 0) - number < depth) return null;
  const [verdict] = await context.chain.settleReceipts({ number, hash }, [{ txHash }], depth);
  return verdict?.kind === "disagree" ? { code: "RPC_DISAGREES", answers: verdict.answers, since: null } : null;
}

/** Null where nothing of it was sent, or the node cannot tell. */
async function isPooled(context: ChainContext, record: TransactionRecord): Promise<boolean | null> {
  if (record.nonce === null || record.lastSubmittedAt === null) return null;
  const answer = await context.chain.pooled(record.lane.signer, [record.nonce]);
  const hash = answer?.[0];
  return answer === null ? null : record.attempts.some(({ txHash }) => txHash === hash);
}

function unknownChain(chainId: number): ExplainedChain {
  const nothing = { minedCount: null, head: null, balance: null, baseFee: null, dearSinceBlock: null, pooled: null };
  const unset = {
    finality: "confirmations",
    confirmations: 0,
    inFlightWindow: 0,
    stuckAfterResubmits: 0,
    ceilings: null,
    doubted: null,
    disputed: null,
    privateEndpoints: [],
  } as const;
  return { chainId, known: false, reachable: false, unreachableSince: null, ...nothing, ...unset };
}
