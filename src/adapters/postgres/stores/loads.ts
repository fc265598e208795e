/** The reads of a lane's owner: everything that it needs to take over a lane and to continue. */
import { type Lane, laneKey } from "../../../domain/lane.ts";
import { standing } from "../../../domain/policy/charges.ts";
import type { IntakeRow, LaneStore, StoredPayload, TrackedRecord } from "../../../ports/lane-store.ts";
import { signers } from "../commit/lookup.ts";
import type { PolicyBook } from "../commit/policies.ts";
import { attemptOf, groupByTransaction, holeOf, receiptsOf, timed } from "../commit/rows.ts";
import { inLane, inPool, requestOf, spentIn } from "../commit/spent-requests.ts";
import { withLane } from "../rows/columns.ts";
import { OPTIONAL, withoutNulls, withPayload } from "../rows/transaction-fields.ts";
import { ask, type Reading } from "../session/connections.ts";
import { type AttemptRow, readAttempts, readRawTransactions, readTrackedAttempts } from "../statements/attempt.ts";
import { readHoles } from "../statements/hole.ts";
import { findWaitingRequests, type IntakeIntentRow, loadIntake } from "../statements/intake.ts";
import { readLane, readQueues } from "../statements/lane.ts";
import { type PayloadRow, readPayloads, readQueuedChanges } from "../statements/payload.ts";
import { readCharges } from "../statements/policy.ts";
import { findPooled } from "../statements/pool-choice.ts";
import { type ReceiptRow, readReceipts, readTrackedReceipts, readWatchedBlocks } from "../statements/receipt.ts";
import { findOpenReservations } from "../statements/reservation.ts";
import { findSpent } from "../statements/spent-request.ts";
import * as transactions from "../statements/transaction.ts";

type LaneLoads = Pick<
  LaneStore,
  "loadLane" | "loadAllocated" | "loadExpiring" | "loadWatched" | "openOf" | "settledBelow"
>;

export function loadsFrom(reading: Reading, policy: PolicyBook | null = null): Omit<LaneStore, "commit"> {
  return { ...laneLoads(reading, policy), ...requestLoads(reading), ...otherLoads(reading) };
}

function laneLoads(reading: Reading, policy: PolicyBook | null): LaneLoads {
  return {
    async loadLane({ lane: { chainId, signer }, instanceId, token }) {
      const [[state], tracked, attempts, receipts, watched, holes, reservations] = await reading.read(
        readLane(chainId, signer, instanceId, token),
        transactions.readTracked(chainId, signer),
        readTrackedAttempts(chainId, signer),
        readTrackedReceipts(chainId, signer),
        readWatchedBlocks(chainId, signer),
        readHoles([signer], [chainId]),
        findOpenReservations([signer], [chainId]),
      );
      if (state === undefined) return null;
      const { policyStamp, ...known } = state;
      // Read the policy document if it has changed. The signing process must re-check the lane's transactions with the
      // document that the last owner used for allocation, or a newer one.
      await policy?.follow(policyStamp);
      return {
        ...known,
        tracking: trackedRecords(tracked, attempts, receipts),
        watched,
        holes: holes.map(holeOf),
        reservations: reservations.map(({ reservationId, nonce, leftMs }) => ({ reservationId, nonce, leftMs })),
      };
    },
    async loadAllocated({ chainId, signer }, fromNonce, limit) {
      const rows = await ask(reading, transactions.readAllocated(chainId, signer, fromNonce, limit));
      if (rows.length === 0) return [];
      const ids = rows.map((row) => row.txId);
      const changes = await ask(reading, readQueuedChanges(ids));
      const changeOf = new Map(changes.map((row) => [row.txId, row]));
      const chargesOf = groupByTransaction(policy?.current.policies ? await ask(reading, readCharges(ids)) : []);
      return rows.map((row) => {
        const { gasLimit, pinned, ...record } = timed(withPayload(row));
        const change = changeOf.get(row.txId);
        const charges = chargesOf.get(row.txId);
        return {
          ...record,
          gas: gasLimit,
          ...(change && { ...storedPayload(change), changedTo: change.kind }),
          ...(charges && { mostCost: standing(charges).cost }),
          ...(pinned && { pinned }),
        };
      });
    },
    loadExpiring: ({ chainId, signer }, limit) => ask(reading, transactions.readExpiring(chainId, signer, limit)),
    async loadWatched({ chainId, signer }, blockHashes) {
      const rows = await ask(reading, transactions.findWatched(chainId, signer, blockHashes));
      if (rows.length === 0) return [];
      const ids = rows.map((row) => row.txId);
      return trackedRecords(rows, ...(await reading.read(readAttempts(ids), readReceipts(ids))));
    },
    openOf: ({ chainId, signer }, owner) => ask(reading, transactions.readOpenOf(chainId, signer, owner)),
    settledBelow: async ({ chainId, signer }) =>
      (await ask(reading, transactions.readSettledBelow(chainId, signer)))[0]?.settledBelow ?? 0,
  };
}

type RequestLoads = Pick<LaneStore, "findByRequestIds" | "findPooled">;

function requestLoads(reading: Reading): RequestLoads {
  return {
    /**
     * Finds transactions by request id. A transaction, still stored or removed, takes precedence over an intake row
     * with the same request id; of two intake rows, the earlier one does.
     */
    async findByRequestIds(asked) {
      const requests = asked.flatMap(({ lane, requestIds }) =>
        requestIds.map((requestId) => requestOf(lane, requestId)),
      );
      if (requests.length === 0) return [];
      const wanted = new Set(requests.map((each) => requestKey(each, each.requestId)));
      const ids = [...new Set(requests.map(({ requestId }) => requestId))];
      const [stored, waiting, gone] = await reading.read(
        transactions.findRequests(requests),
        findWaitingRequests(ids, signers(asked.map(({ lane }) => lane))),
        findSpent(requests.map(inLane)),
      );
      // A removed transaction keeps its request id for good, even against an intent that now waits with the same id.
      const spent = spentIn(gone);
      const left = requests.filter((request) => spent(inLane(request)) !== null);
      // Remove each key when it is first found, so that of several rows with the same key the first one takes
      // precedence.
      const isFirst = (lane: Lane, requestId: string | null) => wanted.delete(requestKey(lane, requestId ?? ""));
      return [
        ...stored.filter((row) => isFirst(row, row.requestId)).map(withLane),
        ...left
          .filter((request) => isFirst(request, request.requestId))
          .map((request) => ({ spent: true as const, ...withLane(request) })),
        ...waiting.filter((row) => isFirst(row, row.requestId)).map(withLane),
      ];
    },
    async findPooled(asked) {
      if (asked.length === 0) return [];
      const [rows, gone] = await reading.read(findPooled(asked), findSpent(asked.map(inPool)));
      const spent = spentIn(gone);
      const left = asked.filter((each) => spent(inPool(each)) !== null);
      return [
        ...rows.map(withLane),
        ...left.map(({ chainId, pool, requestId }) => ({ spent: true as const, chainId, pool, requestId })),
      ];
    },
  };
}

function otherLoads(reading: Reading): Omit<LaneStore, "commit" | keyof LaneLoads | keyof RequestLoads> {
  return {
    async loadPayloads(txIds) {
      if (txIds.length === 0) return [];
      const [rows, changes] = await reading.read(readPayloads(txIds), readQueuedChanges(txIds));
      const rowOf = new Map<string, PayloadRow>([...rows, ...changes].map((row) => [row.txId, row]));
      return txIds.map((txId) => {
        const row = rowOf.get(txId);
        if (row === undefined) throw new Error(`the database has no payload of transaction ${txId}`);
        return storedPayload(row);
      });
    },
    async loadRawTransactions(keys) {
      if (keys.length === 0) return [];
      const rows = await ask(reading, readRawTransactions([...new Set(keys.map(({ txId }) => txId))]));
      const bytes = new Map(rows.map((row) => [`${row.txId}:${row.ordinal}`, row.bytes]));
      return keys.map(({ txId, ordinal }) => {
        const found = bytes.get(`${txId}:${ordinal}`);
        if (found === undefined)
          throw new Error(`the database has no signed bytes of transaction ${txId}, attempt ${ordinal}`);
        return found;
      });
    },
    queues: async (lanes) => (lanes.length === 0 ? [] : (await ask(reading, readQueues(lanes))).map(withLane)),
    async loadIntake(lanes, limit, resting = []) {
      if (lanes.length === 0) return [];
      return (await ask(reading, loadIntake(lanes, limit, resting))).map(intakeRow);
    },
  };
}

function intakeRow({ intakeId, awaits, expiresAt, approved, lapsed, unanswered, ...row }: IntakeIntentRow): IntakeRow {
  const { allowNoCode, ...said } = withPayload(withLane(withoutNulls(row, ...OPTIONAL)));
  const intent = allowNoCode ? { ...said, allowNoCode } : said;
  const waiting = { intakeId, intent, ...(unanswered && { unanswered: true as const }) };
  if (lapsed) return { ...waiting, lapsed: true };
  if (unanswered || awaits === null || expiresAt === null) return waiting;
  return { ...waiting, ...(approved ? { approved } : { expired: { rule: awaits, expiresAt } }) };
}

function requestKey(lane: Lane, requestId: string) {
  return `${laneKey(lane)}/${requestId}`;
}

function storedPayload(row: PayloadRow): StoredPayload {
  return { payload: withPayload(row).payload, gas: row.gasLimit };
}

function trackedRecords(
  rows: readonly transactions.TrackedRow[],
  attempts: readonly AttemptRow[],
  receipts: readonly ReceiptRow[],
): readonly TrackedRecord[] {
  const attemptsOf = groupByTransaction(attempts);
  const receiptOf = receiptsOf(receipts);
  return rows.map((row) => {
    const own = attemptsOf.get(row.txId) ?? [];
    return {
      ...withoutNulls(timed(row), "lostSightAt"),
      attempts: own.map(attemptOf),
      receipt: receiptOf.get(row.txId) ?? null,
      firstSentAt: own[0]?.firstSentAt ?? null,
    };
  });
}
