/** The reads of a lane's owner: everything it takes up, or needs to go on, comes from here. */
import { compareLanes, type Fence, type Hash, type Hex, type Lane, laneKey } from "../../domain/lane.ts";
import type { Receipt } from "../../domain/transaction.ts";
import type { State, SubState } from "../../domain/transitions.ts";
import type {
  AllocatedRecord,
  AskedRequests,
  ExistingTransaction,
  IntakeRow,
  LaneSnapshot,
  OpenReservation,
  QueuedChange,
  StoredPayload,
  TrackedRecord,
} from "../../ports/lane-store.ts";
import { laneOf, payloadOf, prefixed, receiptOf } from "./columns.ts";
import { chainIds, requestKeys, signers } from "./commit/lookup.ts";
import { attemptOf, existingOf, groupByTransaction, holeOf } from "./rows.ts";
import type { Connections } from "./session/connections.ts";
import { type AttemptRow, readAttempts, readRawTransactions, readTrackedAttempts } from "./statements/attempt.ts";
import type { BlockRow } from "./statements/confirmation.ts";
import { readHoles } from "./statements/hole.ts";
import { findAnyIntake, findWaitingRequests, type IntakeIntentRow, loadIntake } from "./statements/intake.ts";
import { readLane } from "./statements/lane.ts";
import { type PayloadRow, type QueuedChangeRow, readPayloads, readQueuedChanges } from "./statements/payload.ts";
import { type ReceiptRow, readReceipts, readTrackedReceipts, readWatchedBlocks } from "./statements/receipt.ts";
import { findOpenReservations, type OpenReservationRow } from "./statements/reservation.ts";
import {
  type AllocatedRow,
  findRequests,
  findWatched,
  readAllocated,
  readSettledBelow,
  readTracked,
  type TrackedRow,
} from "./statements/transaction.ts";

export class Loads {
  private readonly connections: Pick<Connections, "read">;

  constructor(connections: Pick<Connections, "read">) {
    this.connections = connections;
  }

  async lane({ lane, instanceId, token }: Fence): Promise<LaneSnapshot | null> {
    const key = [lane.chainId, lane.signer];
    const [[state], tracked, attempts, receipts, watched, holes, reservations] = await this.connections.read((run) =>
      Promise.all([
        run(readLane, [...key, instanceId, token]),
        run(readTracked, key),
        run(readTrackedAttempts, key),
        run(readTrackedReceipts, key),
        run(readWatchedBlocks, key),
        run(readHoles, [[lane.signer], [lane.chainId]]),
        run(findOpenReservations, [[lane.signer], [lane.chainId]]),
      ]),
    );
    if (state === undefined) return null;
    return {
      cursor: state.next_nonce,
      suspendedBy: state.suspended_by,
      reconciled: state.reconciled,
      epochFloor: state.epoch_floor ?? 0,
      genesisHash: state.genesis_hash as Hash | null,
      tracking: trackedRecords(tracked, attempts, receipts),
      allocated: state.allocated,
      watched: watched.map(blockOf),
      holes: holes.map(holeOf),
      reservations: reservations.map(openReservation),
    };
  }

  async allocated(lane: Lane, fromNonce: number, limit: number): Promise<readonly AllocatedRecord[]> {
    const rows = await this.connections.read((run) =>
      run(readAllocated, [lane.chainId, lane.signer, fromNonce, limit]),
    );
    if (rows.length === 0) return [];
    const changes = await this.connections.read((run) => run(readQueuedChanges, [rows.map((row) => row.tx_id)]));
    const changeOf = new Map(changes.map((row) => [row.tx_id, row]));
    const attemptsOf = groupByTransaction(await this.earlierAttempts(rows));
    return rows.map((row) => ({
      ...allocatedRecord(row, changeOf.get(row.tx_id)),
      ...(row.attempt_count === 0 ? {} : { attempts: (attemptsOf.get(row.tx_id) ?? []).map(attemptOf) }),
    }));
  }

  /** Of the few that were signed at another nonce before. */
  private async earlierAttempts(rows: readonly AllocatedRow[]): Promise<readonly AttemptRow[]> {
    const ids = rows.filter((row) => row.attempt_count > 0).map((row) => row.tx_id);
    return ids.length === 0 ? [] : this.connections.read((run) => run(readAttempts, [ids]));
  }

  async settledBelow({ chainId, signer }: Lane): Promise<number> {
    const [row] = await this.connections.read((run) => run(readSettledBelow, [chainId, signer]));
    return row?.settled_below ?? 0;
  }

  async payloads(txIds: readonly string[]): Promise<readonly StoredPayload[]> {
    if (txIds.length === 0) return [];
    const [rows, changes] = await this.connections.read((run) =>
      Promise.all([run(readPayloads, [txIds]), run(readQueuedChanges, [txIds])]),
    );
    const rowOf = new Map<string, PayloadRow>([...rows, ...changes].map((row) => [row.tx_id, row]));
    return txIds.map((txId) => {
      const row = rowOf.get(txId);
      if (row === undefined) throw new Error(`there is no payload of ${txId}`);
      return { payload: payloadOf(row), gas: BigInt(row.gas_limit) };
    });
  }

  async rawTransactions(keys: readonly { readonly txId: string; readonly ordinal: number }[]): Promise<readonly Hex[]> {
    if (keys.length === 0) return [];
    const ids = [...new Set(keys.map(({ txId }) => txId))];
    const rows = await this.connections.read((run) => run(readRawTransactions, [ids]));
    const bytes = new Map(rows.map((row) => [`${row.tx_id}:${row.ordinal}`, row.raw_transaction]));
    return keys.map(({ txId, ordinal }) => {
      const found = bytes.get(`${txId}:${ordinal}`);
      if (found === undefined) throw new Error(`transaction ${txId} has no bytes of an attempt ${ordinal}`);
      return prefixed(found);
    });
  }

  async watched(lane: Lane, blockHashes: readonly Hash[]): Promise<readonly TrackedRecord[]> {
    const rows = await this.connections.read((run) => run(findWatched, [lane.chainId, lane.signer, blockHashes]));
    if (rows.length === 0) return [];
    const ids = rows.map((row) => row.tx_id);
    const [attempts, receipts] = await this.connections.read((run) =>
      Promise.all([run(readAttempts, [ids]), run(readReceipts, [ids])]),
    );
    return trackedRecords(rows, attempts, receipts);
  }

  /** A transaction wins over an intake row of the same request id, the earlier of two intake rows over the later. */
  async byRequestIds(asked: readonly AskedRequests[]): Promise<readonly ExistingTransaction[]> {
    const requests = asked.flatMap(({ lane, requestIds }) => requestIds.map((requestId) => ({ lane, requestId })));
    if (requests.length === 0) return [];
    const wanted = new Set(requests.map(({ lane, requestId }) => requestKey(lane, requestId)));
    const ids = [...new Set(requests.map(({ requestId }) => requestId))];
    const [stored, waiting] = await this.connections.read((run) =>
      Promise.all([
        run(findRequests, requestKeys(requests)),
        run(findWaitingRequests, [ids, signers(asked.map(({ lane }) => lane))]),
      ]),
    );
    const found: ExistingTransaction[] = [];
    // Each key is deleted as it is found: the first row of it wins.
    for (const row of [...stored, ...waiting]) {
      if (wanted.delete(requestKey(laneOf(row), row.request_id ?? ""))) found.push(existingOf(row));
    }
    return found;
  }

  async hasIntake(): Promise<boolean> {
    return (await this.connections.read((run) => run(findAnyIntake, []))).length > 0;
  }

  async intake(lanes: readonly Lane[], limit: number): Promise<readonly IntakeRow[]> {
    if (lanes.length === 0) return [];
    const keys = [...lanes].sort(compareLanes).map(({ chainId, signer }) => ({ chain_id: chainId, signer }));
    const rows = await this.connections.read((run) =>
      run(loadIntake, [JSON.stringify(keys), chainIds(lanes), signers(lanes), limit]),
    );
    return rows.map(intakeRow);
  }
}

function requestKey(lane: Lane, requestId: string): string {
  return `${laneKey(lane)}/${requestId}`;
}

export function blockOf(row: BlockRow): { readonly number: number; readonly hash: Hash } {
  return { number: row.block_number, hash: row.block_hash as Hash };
}

function trackedRecords(
  rows: readonly TrackedRow[],
  attempts: readonly AttemptRow[],
  receipts: readonly ReceiptRow[],
): readonly TrackedRecord[] {
  const attemptsOf = groupByTransaction(attempts);
  const receiptsOf = new Map<string, Receipt | null>(receipts.map((row) => [row.tx_id, receiptOf(row)]));
  return rows.map((row) => ({
    txId: row.tx_id,
    nonce: row.nonce,
    state: row.state as State,
    subState: row.sub_state as SubState | null,
    attempts: (attemptsOf.get(row.tx_id) ?? []).map(attemptOf),
    receipt: receiptsOf.get(row.tx_id) ?? null,
    submitAttempts: row.submit_attempts,
    createdAt: row.created_at,
    firstSentAt: attemptsOf.get(row.tx_id)?.[0]?.first_sent_at ?? null,
    lastSubmittedAt: row.last_submitted_at,
    acceptedOrdinal: row.accepted_ordinal,
    lastError: row.last_error,
    requestId: row.request_id,
    ...(row.lost_sight_at === null ? {} : { lostSightAt: row.lost_sight_at }),
  }));
}

function allocatedRecord(row: AllocatedRow, change: QueuedChangeRow | undefined): AllocatedRecord {
  const signed = change ?? row;
  return {
    txId: row.tx_id,
    nonce: row.nonce,
    requestId: row.request_id,
    payload: payloadOf(signed),
    gas: BigInt(signed.gas_limit),
    createdAt: row.created_at,
    ...(change === undefined ? {} : { changedTo: change.kind as QueuedChange["kind"] }),
  };
}

function openReservation(row: OpenReservationRow): OpenReservation {
  return { reservationId: row.reservation_id, nonce: row.nonce, leftMs: row.left_ms };
}

function intakeRow(row: IntakeIntentRow): IntakeRow {
  return {
    intakeId: row.intake_id,
    intent: {
      txId: row.tx_id,
      lane: laneOf(row),
      requestId: row.request_id,
      payload: payloadOf(row),
      fingerprint: prefixed(row.fingerprint),
      metadata: row.metadata,
    },
  };
}
