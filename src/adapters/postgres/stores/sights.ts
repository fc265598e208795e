/** SightStore on PostgreSQL: kept counts, small indexes of what is out of the ordinary, and the newest rows. */
import type { TroubledLane } from "../../../domain/troubles/find.ts";
import { revived } from "../../../domain/troubles/rows.ts";
import type { Between, NodeReport, SearchTerms, SightStore } from "../../../ports/sight-store.ts";
import { only } from "../commit/rows.ts";
import { laneOf, withLane } from "../rows/columns.ts";
import { ask, type Reading, type Run } from "../session/connections.ts";
import type { DurableRuntime } from "../session/durably.ts";
import {
  listEndedReports,
  listPastDatabases,
  listPastInstances,
  listReports,
  listTakeovers,
  type ReportRow,
  writeReport,
} from "../statements/cluster-past.ts";
import {
  searchHash,
  searchIds,
  searchNonce,
  searchRequests,
  searchReservations,
  searchSigners,
} from "../statements/find.ts";
import { listOpenNotices } from "../statements/notice.ts";
import {
  countTroubles,
  listAwaiting,
  listHeld,
  listHolesBetween,
  listNonces,
  listReservedNonces,
  listTroubledLanes,
  type OldestOpenRow,
  readNonceEnds,
  readOldestOpen,
  readPulse,
  sumLanes,
  type TroubledLaneRow,
} from "../statements/sight.ts";
import { preferOrder } from "../statements/transaction-page.ts";
import { noticeOf } from "./kept-notices.ts";
import { writeRows } from "./leases.ts";

/** `leasing`: for what a node says of itself, which is no lane's. */
export function sightsFrom(reading: Reading, leasing: DurableRuntime): SightStore {
  return { ...figuresFrom(reading), ...searchesIn(reading), ...reportsIn(reading, leasing) };
}

function figuresFrom(reading: Reading): Pick<SightStore, "troubles" | "totals" | "pulse" | "oldestOpen"> {
  return {
    async oldestOpen(chainIds) {
      const [, rows] = await reading.read((run) =>
        Promise.all([run(preferOrder, []), run(readOldestOpen, [chainIds])]),
      );
      return chainIds.map((chainId) => oldestOpen(rows.find((row) => row.chainId === chainId)));
    },
    async troubles(limit) {
      const [, counts, lanes, held, awaiting, notices] = await reading.read((run) =>
        Promise.all([
          run(preferOrder, []),
          run(countTroubles, [limit]),
          run(listTroubledLanes, [limit]),
          run(listHeld, [limit]),
          run(listAwaiting, [limit]),
          run(listOpenNotices, [limit]),
        ]),
      );
      const { at, more } = only(counts);
      return {
        at,
        more,
        lanes: lanes.map(troubledLane),
        held: held.map(withLane),
        awaiting: awaiting.map(withLane),
        notices: notices.map(noticeOf),
      };
    },
    async totals({ signers, chains }) {
      const sums = await ask(reading, sumLanes, [signers && [...signers], chains && [...chains]]);
      const { at, lanes, created, allocated, tracking, stuck, confirmed, failed } = only(sums);
      const over = { CONFIRMED: confirmed, FAILED_FINAL: failed };
      return {
        at,
        lanes,
        states: { CREATED: created, ALLOCATED: allocated, TRACKING: tracking, STUCK: stuck, ...over },
      };
    },
    async pulse() {
      const [, [row]] = await reading.read((run) => Promise.all([run(preferOrder, []), run(readPulse, [])]));
      return row ?? { createdPerMinute: 0, completedPerMinute: 0, secondsToFinality: [] };
    },
  };
}

function searchesIn(reading: Reading): Pick<SightStore, "search" | "nonces"> {
  return {
    async search(terms) {
      const [, transactions, lanes, reservations] = await reading.read((run) =>
        Promise.all([
          run(preferOrder, []),
          Promise.all(transactionsLike(run, terms)),
          run(searchSigners, [...bounds(terms.signers, NO_SIGNER), terms.limit]),
          run(searchReservations, [...bounds(terms.reservationIds, NO_ID), terms.limit]),
        ]),
      );
      return {
        transactions: [...new Map(transactions.flat().map((row) => [row.txId, withLane(row)])).values()],
        lanes: lanes.map(laneOf),
        reservations: reservations.map(withLane),
      };
    },
    async nonces({ chainId, signer }, from, to) {
      const [, [ends], transactions, reservations, holes] = await reading.read((run) =>
        Promise.all([
          run(preferOrder, []),
          run(readNonceEnds, [chainId, signer]),
          run(listNonces, [chainId, signer, from, to]),
          run(listReservedNonces, [chainId, signer, from, to]),
          run(listHolesBetween, [chainId, signer, from, to]),
        ]),
      );
      const { cursor, firstOpen, departedBelow } = ends ?? { cursor: null, firstOpen: null, departedBelow: 0 };
      return { cursor, firstOpen, departedBelow, transactions, reservations, holes };
    },
  };
}

function reportsIn(
  reading: Reading,
  leasing: DurableRuntime,
): Pick<SightStore, "past" | "report" | "reports" | "endedReports"> {
  return {
    async past(limit) {
      const [takeovers, nodes, database] = await reading.read((run) =>
        Promise.all([run(listTakeovers, [limit]), run(listPastInstances, [limit]), run(listPastDatabases, [limit])]),
      );
      return { takeovers: takeovers.map(withLane), nodes, database };
    },
    async report({ instanceId, findings }) {
      await writeRows(leasing, writeReport, [instanceId, JSON.stringify(findings)]);
    },
    reports: async () => (await ask(reading, listReports)).map(reportOf),
    endedReports: async () => (await ask(reading, listEndedReports)).map(reportOf),
  };
}

function reportOf({ instanceId, findings }: ReportRow): NodeReport {
  return { instanceId, findings: findings.map(revived) };
}

/** Between these there is nothing. */
const NO_SIGNER: Between = { from: "", to: "" };
const NO_ID: Between = { from: "00000000-0000-0000-0000-000000000001", to: "00000000-0000-0000-0000-000000000000" };

function bounds(asked: Between | undefined, otherwise: Between): readonly string[] {
  const { from, to } = asked ?? otherwise;
  return [from, to];
}

function transactionsLike(run: Run, { txIds, txHash, requestIds, nonce, limit }: SearchTerms) {
  return [
    ...(txHash === undefined ? [] : [run(searchHash, [txHash])]),
    ...(txIds === undefined ? [] : [run(searchIds, [txIds.from, txIds.to, limit])]),
    ...(requestIds === undefined ? [] : [run(searchRequests, [requestIds.from, requestIds.to, limit])]),
    ...(nonce === undefined ? [] : [run(searchNonce, [nonce.signers.from, nonce.signers.to, nonce.nonce, limit])]),
  ];
}

function oldestOpen(row: OldestOpenRow | undefined) {
  if (row === undefined || row.oldest === null) return row?.isCutShort === true ? "unknown" : "none";
  const { txId, signer, nonce, createdAt } = row.oldest;
  return { lane: { chainId: row.chainId, signer }, txId, nonce, createdAt: new Date(createdAt) };
}

function troubledLane(row: TroubledLaneRow): TroubledLane {
  const { headTxId: txId, headNonce, headState, headSince, holeNonce, holeDetail, holeSince } = row;
  const { suspendedBy, open, actor, reason, decidedAt } = row;
  return {
    ...{ lane: laneOf(row), suspendedBy, open },
    decision: actor === null ? null : { actor, reason, at: decidedAt },
    head: txId === null ? null : { txId, nonce: headNonce, state: headState, since: headSince },
    hole: holeNonce === null ? null : { nonce: holeNonce, detail: holeDetail, since: holeSince },
  };
}
