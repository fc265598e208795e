/**
 * Collects what an explanation is drawn from: the database's view of the transaction and its lane, and what the chain
 * says now. Any node can answer; a chain that is away leaves facts out, never the answer.
 */
import { FencepostError } from "../../domain/errors.ts";
import { explain } from "../../domain/explain/explain.ts";
import type {
  ExplainedChain,
  ExplainedLane,
  ExplainedTransaction,
  Explanation,
} from "../../domain/explain/situation.ts";
import { feeCap } from "../../domain/fees.ts";
import { depthNeeded } from "../../domain/finality.ts";
import type { Kill } from "../../domain/kills.ts";
import { type Address, laneKey } from "../../domain/lane.ts";
import { foreseen } from "../../domain/ledger/index.ts";
import type { Forbidden } from "../../domain/policy/policy.ts";
import { range } from "../../domain/range.ts";
import { isSettled } from "../../domain/transitions.ts";
import type { Block } from "../../ports/chain.ts";
import type { Clock } from "../../ports/clock.ts";
import type { HistoryRecord, LaneRecord, QueryStore, TransactionRecord } from "../../ports/query-store.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { LimitPorts } from "../lane/limits.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { signerAwayOf } from "./signers.ts";
import { silent } from "./silent.ts";

export interface ExplainPorts extends LimitPorts {
  readonly store: Pick<QueryStore, "transaction" | "transactionAt" | "history" | "lanes" | "poolOf">;
  readonly clock: Clock;
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly kills: { concerning(signer: Address): Kill | null };
  readonly lanesOf: (chainId: number) => readonly OwnedLane[];
}

/** How far back "since block" looks. */
const BLOCKS_BACK = 32;

export async function explainTransaction(ports: ExplainPorts, txId: string): Promise<Explanation> {
  const record = await ports.store.transaction(txId);
  if (record === null) throw new FencepostError("NOT_FOUND", `there is no transaction ${txId}`);
  // The chain first, for it may take its time: a lease that was read before would seem to have ended meanwhile.
  const chain = await chainFacts(ports.chains.get(record.lane.chainId), record);
  const [history, lanes] = await Promise.all([ports.store.history(record.txId), ports.store.lanes(record.lane.signer)]);
  const row = lanes.find(({ lane }) => lane.chainId === record.lane.chainId);
  const lane = await laneFacts(ports, record, { row, minedCount: chain.minedCount });
  const transaction = { ...transactionFacts(record, history), forbidden: await forbiddenForMore(ports, record) };
  const explanation = explain({ now: ports.clock.now(), transaction, lane, chain });
  const pool = await ports.store.poolOf(record.txId);
  if (pool === null) return explanation;
  return { ...explanation, summary: `${explanation.summary} Its signer was chosen from the pool ${pool}.` };
}

/** A tenth more is the least that a node takes for a replacement. Null: no policy is against that. */
async function forbiddenForMore({ limits = null }: LimitPorts, record: TransactionRecord): Promise<Forbidden | null> {
  const { lane, txId, payload, attempts, receipt } = record;
  const attempt = attempts.findLast((each) => each.foreign !== true);
  if (limits === null || attempt === undefined || receipt !== null || isSettled(record.state)) return null;
  const isEmpty = attempt.kind === "cancel" || attempt.kind === "placeholder";
  const value = isEmpty ? 0n : payload.value;
  const gasCost = (attempt.gas * feeCap(attempt.fees) * 11n) / 10n;
  const about = attempt.kind === "placeholder" ? attempt.kind : "cost";
  const use = await limits.use(lane, { txId });
  const verdict = foreseen(limits.policies, use, { to: null, data: "0x", value, gasCost, about });
  return "forbidden" in verdict ? verdict.forbidden : null;
}

type Facts = Omit<ExplainedTransaction, "forbidden">;

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

async function laneFacts(
  { store, kills, lanesOf }: ExplainPorts,
  record: TransactionRecord,
  { row, minedCount }: { readonly row: LaneRecord | undefined; readonly minedCount: number | null },
): Promise<ExplainedLane> {
  const owner = row?.owner ?? null;
  const killed = kills.concerning(record.lane.signer);
  const signerAway = signerAwayOf(lanesOf(record.lane.chainId), record.lane.signer);
  const known = { killed, suspended: (row?.suspendedBy ?? null) !== null, owner, signerAway };
  const whole = { ...known, head: null, hole: null, holeDetail: null, holeReserved: false };
  if (record.nonce === null || isSettled(record.state)) return whole;
  if (minedCount === null) {
    const head = row?.headOfLine ?? null;
    if (head === null || head.txId === record.txId) return whole;
    return { ...whole, head: { ...head, held: (await store.transaction(head.txId))?.heldSince !== undefined } };
  }
  if (minedCount >= record.nonce) return whole;
  const next = await store.transactionAt(record.lane, minedCount);
  if (next !== null) {
    const { txId, state, heldSince } = next;
    return { ...whole, head: { txId, nonce: minedCount, state, held: heldSince !== undefined } };
  }
  const hole = row?.holes.find((each) => each.nonce === minedCount);
  // What no transaction holds and is no hole either is kept for a caller, where anything is.
  const holeReserved = hole === undefined && (row?.reserved ?? 0) > 0;
  return { ...whole, hole: minedCount, holeDetail: hole?.detail ?? null, holeReserved };
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
    ceilings: context.ceilings,
    doubted: context.doubts.get(laneKey(record.lane)) ?? null,
    disputed,
  };
}

/** The first of the unbroken run of blocks, up to the newest, that asked for more than the cap. */
function dearSince(blocks: readonly (Block | null)[], cap: bigint): number | null {
  const affordable = blocks.findLastIndex((block) => block !== null && (block.baseFeePerGas ?? 0n) <= cap);
  return blocks[affordable + 1]?.number ?? null;
}

/** The lane's owner has asked already; any other node asks where the receipt is deep enough to have decided by now. */
async function disputeOver(context: ChainContext, { receipt }: TransactionRecord): Promise<ExplainedChain["disputed"]> {
  if (receipt === null) return null;
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
    ceilings: null,
    doubted: null,
    disputed: null,
  } as const;
  return { chainId, known: false, reachable: false, unreachableSince: null, ...nothing, ...unset };
}
