import { ALL_SIGNERS, type FigureRow, HOUR_S, type StoredStep } from "../../../src/domain/figures/figures.ts";
import { daysOf } from "../../../src/domain/figures/spend.ts";
import { isWithin, type Limits } from "../../../src/domain/keys/principal.ts";
import { type Address, type Lane, laneKey } from "../../../src/domain/lane.ts";
import { isSettled, type State } from "../../../src/domain/transaction/transitions.ts";
import type { FigureFilter, Spender } from "../../../src/ports/figure-store.ts";
import type {
  Between,
  ClusterPast,
  FoundTransaction,
  LaneNonces,
  NodeReport,
  OldestOpen,
  Pulse,
  SearchHits,
  SearchTerms,
  Totals,
  Troubles,
} from "../../../src/ports/sight-store.ts";
import { openNotices } from "./notices.ts";
import { type DatabaseState, isAlive, type LaneRow, sameLane, type TransactionRow, waitingIntake } from "./state.ts";

const FIVE_MINUTES_MS = 300_000;

function openOf(state: DatabaseState, lane: Lane): readonly TransactionRow[] {
  return [...state.transactions.values()]
    .filter((row) => sameLane(row.lane, lane) && row.live && row.nonce !== null && !isSettled(row.state))
    .sort((a, b) => Number(a.nonce) - Number(b.nonce));
}

function bySigner(a: { readonly lane: Lane }, b: { readonly lane: Lane }): number {
  if (a.lane.signer === b.lane.signer) return a.lane.chainId - b.lane.chainId;
  return a.lane.signer < b.lane.signer ? -1 : 1;
}

export function troubles(state: DatabaseState, limit: number, at: Date): Troubles {
  const rows = [...state.lanes.values()].sort(bySigner);
  const isTroubled = (row: LaneRow) =>
    row.suspendedBy !== null || openOf(state, row.lane).some((tx) => tx.state === "STUCK");
  const troubled = rows.filter(isTroubled);
  const holed = rows.filter(({ ledger }) => ledger.holes.every().length > 0);
  const shown = new Set([...troubled.slice(0, limit), ...holed.slice(0, limit)]);
  const held = [...state.transactions.values()].filter(({ live, heldSince }) => live && heldSince !== null);
  const awaiting = waitingIntake(state).filter(({ approval }) => approval !== null && !approval.approved);
  const beyond = (all: readonly unknown[]) => Math.max(0, all.length - limit);
  return {
    at,
    more: beyond(troubled) + beyond(held) + beyond(awaiting) + beyond(openNotices(state)),
    notices: openNotices(state).slice(0, limit),
    lanes: rows.filter((row) => shown.has(row)).map((row) => troubledLane(state, row)),
    held: held.slice(0, limit).map(({ lane, txId, nonce, heldSince }) => {
      return { lane, txId, nonce, since: heldSince as Date, open: openOf(state, lane).length };
    }),
    awaiting: awaiting.slice(0, limit).map(({ intent, createdAt }) => {
      return { lane: intent.lane, txId: intent.txId, nonce: null, since: createdAt, open: 0 };
    }),
  };
}

function troubledLane(state: DatabaseState, row: LaneRow): Troubles["lanes"][number] {
  const open = openOf(state, row.lane);
  const head = open.find(({ subState }) => subState !== "MINED");
  const [[, hole] = []] = row.ledger.holes.every();
  const [decision] = row.suspendedBy === null ? [] : row.decisions;
  return {
    lane: row.lane,
    suspendedBy: row.suspendedBy,
    open: open.length,
    decision: decision === undefined ? null : { actor: decision.actor, reason: decision.reason, at: decision.at },
    head:
      head === undefined
        ? null
        : { txId: head.txId, nonce: head.nonce as number, state: head.state, since: stuckSince(head) },
    hole: hole === undefined ? null : { nonce: hole.nonce, detail: hole.detail, since: hole.since },
  };
}

function stuckSince({ state, history, updatedAt }: TransactionRow): Date {
  const stuck = state === "STUCK" ? history.find(({ event }) => event === "stick") : undefined;
  return stuck?.firstAt ?? updatedAt;
}

export function totals(state: DatabaseState, limits: Limits, at: Date): Totals {
  const lanes = [...state.lanes.values()].filter(({ lane }) => isWithin(limits, lane));
  const count = (wanted: State) =>
    lanes.reduce((sum, { lane }) => sum + openOf(state, lane).filter((row) => row.state === wanted).length, 0);
  return {
    at,
    lanes: lanes.length,
    states: {
      CREATED: waitingIntake(state).filter(({ intent }) => isWithin(limits, intent.lane)).length,
      ALLOCATED: count("ALLOCATED"),
      TRACKING: count("TRACKING"),
      STUCK: count("STUCK"),
      CONFIRMED: lanes.reduce((sum, { confirmed }) => sum + confirmed, 0),
      FAILED_FINAL: lanes.reduce((sum, { failed }) => sum + failed, 0),
    },
  };
}

export function pulse(state: DatabaseState, now: Date): Pulse {
  const isRecent = (at: Date) => now.getTime() - at.getTime() < FIVE_MINUTES_MS;
  const settled = state.completions.filter((each) => each.settled);
  return {
    createdPerMinute: [...state.transactions.values()].filter(({ createdAt }) => isRecent(createdAt)).length / 5,
    completedPerMinute: settled.filter(({ at }) => isRecent(at)).length / 5,
    secondsToFinality: settled.slice(-200).flatMap(({ txId, at }) => {
      const row = state.transactions.get(txId);
      return row === undefined ? [] : [Math.max(0, (at.getTime() - row.createdAt.getTime()) / 1_000)];
    }),
  };
}

export function oldestOpen(state: DatabaseState, chainIds: readonly number[]): readonly (OldestOpen | "none")[] {
  return chainIds.map((chainId) => {
    const lanes = [...state.lanes.values()].filter(({ lane }) => lane.chainId === chainId);
    const [oldest] = lanes.flatMap(({ lane }) => openOf(state, lane)).sort((a, b) => (a.txId < b.txId ? -1 : 1));
    if (oldest === undefined) return "none";
    const { lane, txId, nonce, createdAt } = oldest;
    return { lane, txId, nonce: Number(nonce), createdAt };
  });
}

export function search(state: DatabaseState, terms: SearchTerms): SearchHits {
  const { txIds, txHash, requestIds, nonce, signers, reservationIds, limit } = terms;
  const rows = [...state.transactions.values()].map(({ lane, txId, requestId, nonce, state, subState, attempts }) => ({
    ...{ lane, txId, requestId, nonce, state, subState },
    hashes: attempts.map((attempt) => attempt.txHash),
  }));
  const waiting = waitingIntake(state).map(({ intent: { lane, txId, requestId }, approval }) => {
    const subState = approval !== null && !approval.approved ? ("AWAITING_APPROVAL" as const) : null;
    return { lane, txId, requestId, nonce: null, state: "CREATED" as const, subState, hashes: [] };
  });
  const found = [...rows, ...waiting].filter(
    (row) =>
      (txHash !== undefined && row.hashes.some((hash) => hash === txHash)) ||
      (txIds !== undefined && row.txId >= txIds.from && row.txId <= txIds.to) ||
      (requestIds !== undefined && row.requestId !== null && isBetween(row.requestId, requestIds)) ||
      (nonce !== undefined && row.nonce === nonce.nonce && isBetween(row.lane.signer, nonce.signers)),
  );
  const transactions: readonly FoundTransaction[] = found.map(({ hashes: _, ...row }) => row);
  return {
    transactions: transactions.slice(0, limit),
    lanes: [...state.lanes.values()]
      .map(({ lane }) => lane)
      .filter(({ signer }) => signers !== undefined && isBetween(signer, signers))
      .slice(0, limit),
    reservations: state
      .reservations()
      .filter(({ reservationId: id }) => reservationIds && id >= reservationIds.from && id <= reservationIds.to)
      .map(({ lane, reservationId, nonce, state }) => ({ lane, reservationId, nonce, state }))
      .slice(0, limit),
  };
}

function isBetween(text: string, { from, to }: Between): boolean {
  return (
    Buffer.compare(Buffer.from(text), Buffer.from(from)) >= 0 && Buffer.compare(Buffer.from(text), Buffer.from(to)) < 0
  );
}

export function nonces(state: DatabaseState, lane: Lane, from: number, to: number): LaneNonces {
  const row = state.lanes.get(laneKey(lane));
  const isIn = ({ nonce }: { readonly nonce: number | null }) => nonce !== null && nonce >= from && nonce <= to;
  const holes = row?.ledger.holes.every().map(([, hole]) => hole) ?? [];
  const reservations = state.reservations().filter((each) => sameLane(each.lane, lane) && each.state !== "RELEASED");
  const open = [
    ...openOf(state, lane).map(({ nonce }) => Number(nonce)),
    ...holes.map(({ nonce }) => nonce),
    ...reservations.filter((each) => each.state === "RESERVED").map(({ nonce }) => nonce),
  ];
  return {
    cursor: row?.cursor ?? null,
    firstOpen: open.length === 0 ? null : Math.min(...open),
    transactions: [...state.transactions.values()]
      .filter((tx) => sameLane(tx.lane, lane) && isIn(tx))
      .map(({ nonce, txId, state, subState, heldSince }) => {
        return { nonce: Number(nonce), txId, state, subState, held: heldSince !== null };
      })
      .sort((a, b) => a.nonce - b.nonce),
    reservations: reservations
      .filter(isIn)
      .map(({ nonce, reservationId, state }) => ({ nonce, reservationId, state }))
      .sort((a, b) => a.nonce - b.nonce),
    holes: holes.filter(isIn).map(({ nonce, detail }) => ({ nonce, detail })),
  };
}

const DATES_FOR_MS = 900_000;

export function reports(state: DatabaseState, now: Date): readonly NodeReport[] {
  return [...state.reports.values()]
    .filter(({ instanceId }) => isAlive(state.instances.get(instanceId), now))
    .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
}

export function endedReports(state: DatabaseState, now: Date): readonly NodeReport[] {
  return [...state.reports.values()].filter(({ instanceId }) => {
    const instance = state.instances.get(instanceId);
    if (instance === undefined || isAlive(instance, now)) return false;
    return now.getTime() - instance.heartbeatAt.getTime() < DATES_FOR_MS;
  });
}

export function past(state: DatabaseState, limit: number, now: Date): ClusterPast {
  const nodes = [...state.instances.values()].sort((a, b) => b.startedAt.getTime() - a.startedAt.getTime());
  return {
    takeovers: state.takeovers.slice(-limit).reverse(),
    nodes: nodes.slice(0, limit).map(({ nodeId, instanceId, version, startedAt, heartbeatAt, ...row }) => {
      const living = row.draining ? "draining" : "alive";
      const ended = row.dead ? "gone" : row.expiresAt <= now ? "expired" : living;
      return { nodeId, instanceId, version, startedAt, heartbeatAt, state: ended };
    }),
    database: [
      {
        epoch: state.feed.epoch,
        systemIdentifier: "memory",
        timeline: String(state.history),
        mayHaveLost: state.epochMayHaveLost,
        seenAt: now,
      },
    ],
  };
}

/** Buckets in a range of time, of these signers or of whole chains. */
export function figures(state: DatabaseState, stepSeconds: StoredStep, filter: FigureFilter): readonly FigureRow[] {
  const { signers, chains, from, to } = filter;
  return [...state.figures.values()].filter(
    (row) =>
      row.stepSeconds === stepSeconds &&
      row.at >= from &&
      row.at < to &&
      (signers === null ? row.signer === ALL_SIGNERS : signers.includes(row.signer as Address)) &&
      (chains === null || chains.includes(row.chainId)),
  );
}

export function spenders(state: DatabaseState, filter: FigureFilter, limit: number): readonly Spender[] {
  const { first, last } = daysOf(filter);
  const days = [...state.spend.values()].filter(({ at }) => at >= first && at <= last);
  const isSelected = (signer: Address) => filter.signers === null || filter.signers.includes(signer);
  const signers = [...new Set(days.map(({ signer }) => signer))].filter(isSelected);
  const sums = new Map<string, Spender>();
  for (const row of figures(state, HOUR_S, { ...filter, signers })) {
    if (row.completed === 0) continue;
    const { chainId } = row;
    const key = `${row.signer} ${chainId}`;
    const sum = sums.get(key) ?? { signer: row.signer as Address, chainId, completed: 0, fees: 0n };
    sums.set(key, { ...sum, completed: sum.completed + row.completed, fees: sum.fees + row.fees });
  }
  return [...sums.values()].sort((a, b) => Number(b.fees - a.fees) || b.completed - a.completed).slice(0, limit);
}
