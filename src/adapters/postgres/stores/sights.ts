/**
 * Implements SightStore, the reads for operators' overviews, on PostgreSQL. It uses counters, small indexes of
 * exceptional rows, and the newest rows.
 */
import { ALL_SIGNERS } from "../../../domain/figures/figures.ts";
import { daysOf } from "../../../domain/figures/spend.ts";
import type { TroubledLane } from "../../../domain/troubles/find.ts";
import { revived } from "../../../domain/troubles/rows.ts";
import type { FigureStore } from "../../../ports/figure-store.ts";
import type { Between, NodeReport, SearchTerms, SightStore } from "../../../ports/sight-store.ts";
import { only } from "../commit/rows.ts";
import { laneOf, withLane } from "../rows/columns.ts";
import { ask, type Reading } from "../session/connections.ts";
import type { DurableRuntime } from "../session/durably.ts";
import * as past from "../statements/cluster-past.ts";
import {
  rankSigners,
  rankSpenders,
  readFigures,
  readSpenders,
  writeFigures,
  writeSpend,
} from "../statements/figure.ts";
import * as find from "../statements/find.ts";
import { listOpenNotices } from "../statements/notice.ts";
import * as sight from "../statements/sight.ts";
import type { Command } from "../statements/statement.ts";
import { preferOrder } from "../statements/transaction-page.ts";
import { noticeOf } from "./kept-notices.ts";
import { writeRows } from "./leases.ts";

/**
 * `leasing`: connections for the reports that a node writes about itself. `counting`: those for its statistics, which
 * must not be connections that leases or commits need.
 */
export function sightsFrom(
  reading: Reading,
  leasing: DurableRuntime,
  counting: DurableRuntime,
): SightStore & FigureStore {
  return {
    ...statisticsFrom(reading, counting),
    ...figuresFrom(reading),
    ...searchesIn(reading),
    ...reportsIn(reading, leasing),
  };
}

function figuresFrom(reading: Reading): Pick<SightStore, "troubles" | "totals" | "pulse" | "oldestOpen"> {
  return {
    async oldestOpen(chainIds) {
      const [, rows] = await reading.read(preferOrder(), sight.readOldestOpen(chainIds));
      return chainIds.map((chainId) => oldestOpen(rows.find((row) => row.chainId === chainId)));
    },
    async troubles(limit) {
      const [, counts, lanes, held, awaiting, notices] = await reading.read(
        preferOrder(),
        sight.countTroubles(limit),
        sight.listTroubledLanes(limit),
        sight.listHeld(limit),
        sight.listAwaiting(limit),
        listOpenNotices(limit),
      );
      return {
        ...only(counts),
        lanes: lanes.map(troubledLane),
        held: held.map(withLane),
        awaiting: awaiting.map(withLane),
        notices: notices.map(noticeOf),
      };
    },
    async totals({ signers, chains }) {
      const sums = await ask(reading, sight.sumLanes(signers && [...signers], chains && [...chains]));
      const { at, lanes, ...states } = only(sums);
      return { at, lanes, states };
    },
    async pulse() {
      const [, [row]] = await reading.read(preferOrder(), sight.readPulse());
      return row ?? { createdPerMinute: 0, completedPerMinute: 0, secondsToFinality: [] };
    },
  };
}

/** The last instant that has a year of four digits. PostgreSQL reads neither year 0 nor the form of later ones. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Times as text. Nothing is older than 1970, so that earlier times select the same. */
const isoOf = (...times: readonly Date[]) =>
  times.map((time) => new Date(Math.min(Math.max(time.getTime(), 0), LAST_MS)).toISOString());

function statisticsFrom(reading: Reading, counting: DurableRuntime): FigureStore {
  return {
    async writeFigures({ lane: { chainId, signer }, instanceId, token }, { figures, spend }) {
      const counted = figures.map((row) => ({ ...row, instanceId }));
      const ranked = spend.map((row) => ({ ...row, ranks: `{${row.ranks}}`, instanceId }));
      const owned = [chainId, signer, token] as const;
      const isWritten = async (command: Command) => (await writeRows(counting, command)).length > 0;
      return (
        (counted.length === 0 || (await isWritten(writeFigures(counted, ...owned)))) &&
        (ranked.length === 0 || (await isWritten(writeSpend(ranked, ...owned))))
      );
    },
    figures: (stepSeconds, { signers, chains, from, to }) =>
      ask(reading, readFigures(signers ?? [ALL_SIGNERS], stepSeconds, ...isoOf(from, to), chains)),
    async spenders({ signers, chains, from, to }, limit) {
      const { first, before, last, until } = daysOf({ from, to });
      const range = [...isoOf(first), before, ...isoOf(last), until, chains, limit];
      const rank = signers === null ? rankSpenders(...range) : rankSigners(...range, signers);
      const found = new Set((await ask(reading, rank)).map(({ signer }) => signer));
      return ask(reading, readSpenders(...isoOf(from, to), chains, [...found], limit));
    },
  };
}

function searchesIn(reading: Reading): Pick<SightStore, "search" | "nonces"> {
  return {
    async search(terms) {
      const { signers = NO_SIGNER, reservationIds = NO_ID, limit } = terms;
      const [, lanes, reservations, ...transactions] = await reading.read(
        preferOrder(),
        find.searchSigners(signers.from, signers.to, limit),
        find.searchReservations(reservationIds.from, reservationIds.to, limit),
        ...transactionsLike(terms),
      );
      return {
        transactions: [...new Map(transactions.flat().map((row) => [row.txId, withLane(row)])).values()],
        lanes,
        reservations: reservations.map(withLane),
      };
    },
    async nonces({ chainId, signer }, from, to) {
      const [, [ends], transactions, reservations, holes] = await reading.read(
        preferOrder(),
        sight.readNonceEnds(chainId, signer),
        sight.listNonces(chainId, signer, from, to),
        sight.listReservedNonces(chainId, signer, from, to),
        sight.listHolesBetween(chainId, signer, from, to),
      );
      return { ...(ends ?? { cursor: null, firstOpen: null, departedBelow: 0 }), transactions, reservations, holes };
    },
  };
}

function reportsIn(
  reading: Reading,
  leasing: DurableRuntime,
): Pick<SightStore, "past" | "report" | "reports" | "endedReports"> {
  return {
    async past(limit) {
      const [takeovers, nodes, database] = await reading.read(
        past.listTakeovers(limit),
        past.listPastInstances(limit),
        past.listPastDatabases(limit),
      );
      return { takeovers: takeovers.map(withLane), nodes, database };
    },
    async report({ instanceId, findings }) {
      await writeRows(leasing, past.writeReport(instanceId, JSON.stringify(findings)));
    },
    reports: async () => (await ask(reading, past.listReports())).map(reportOf),
    endedReports: async () => (await ask(reading, past.listEndedReports())).map(reportOf),
  };
}

function reportOf({ instanceId, findings }: past.ReportRow): NodeReport {
  return { instanceId, findings: findings.map(revived) };
}

/** Empty ranges for a search that must find no signer or no id. */
const NO_SIGNER: Between = { from: "", to: "" };
const NO_ID: Between = { from: "00000000-0000-0000-0000-000000000001", to: "00000000-0000-0000-0000-000000000000" };

function transactionsLike({ txIds, txHash, requestIds, nonce, limit }: SearchTerms) {
  return [
    ...(txHash === undefined ? [] : [find.searchHash(txHash)]),
    ...(txIds === undefined ? [] : [find.searchIds(txIds.from, txIds.to, limit)]),
    ...(requestIds === undefined ? [] : [find.searchRequests(requestIds.from, requestIds.to, limit)]),
    ...(nonce === undefined ? [] : [find.searchNonce(nonce.signers.from, nonce.signers.to, nonce.nonce, limit)]),
  ];
}

function oldestOpen(row: sight.OldestOpenRow | undefined) {
  if (row === undefined || row.oldest === null) return row?.isCutShort === true ? "unknown" : "none";
  const { txId, signer, nonce, createdAt } = row.oldest;
  return { lane: { chainId: row.chainId, signer }, txId, nonce, createdAt: new Date(createdAt) };
}

function troubledLane(row: sight.TroubledLaneRow): TroubledLane {
  const { headTxId: txId, headNonce, headState, headSince, holeNonce, holeDetail, holeSince } = row;
  const { suspendedBy, open, actor, reason, decidedAt } = row;
  return {
    lane: laneOf(row),
    suspendedBy,
    open,
    decision: actor === null ? null : { actor, reason, at: decidedAt },
    head: txId === null ? null : { txId, nonce: headNonce, state: headState, since: headSince },
    hole: holeNonce === null ? null : { nonce: holeNonce, detail: holeDetail, since: holeSince },
  };
}
