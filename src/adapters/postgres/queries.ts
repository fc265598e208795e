/** QueryStore on PostgreSQL: reads for callers and operators. Pages are found as ids first, then read by key. */
import type { Address, Hash, Lane } from "../../domain/lane.ts";
import { reservationAt } from "../../domain/ledger/index.ts";
import type { Reservation } from "../../domain/reservations.ts";
import type { CompletionState, State, SubState, TransitionEvent } from "../../domain/transitions.ts";
import type {
  AttemptRecord,
  CompletionRecord,
  FeedPage,
  HistoryRecord,
  LaneDecisionRecord,
  LaneRecord,
  ListFilter,
  TransactionRecord,
} from "../../ports/query-store.ts";
import { laneOf, payloadOf, receiptOf } from "./columns.ts";
import { ownerOf } from "./leases.ts";
import { blockOf } from "./loads.ts";
import { findPage, isNarrow, matches } from "./pages.ts";
import { attemptOf, groupByTransaction, holeOf, reservationOf } from "./rows.ts";
import type { Connections } from "./session/connections.ts";
import { type AttemptRow, readAttempts } from "./statements/attempt.ts";
import { readConfirmations } from "./statements/confirmation.ts";
import { type CompletionRow, readCompletions, readFeed } from "./statements/feed.ts";
import { type HistoryRow, readHistory } from "./statements/history.ts";
import { type HoleRow, listHoles } from "./statements/hole.ts";
import { type IntakeRecordRow, readIntakeRecords } from "./statements/intake.ts";
import { type LaneListRow, listLanes, readLaneDecisions } from "./statements/lane.ts";
import { readReceipts } from "./statements/receipt.ts";
import { readReservation } from "./statements/reservation.ts";
import { countLiveStates, findByNonce, type RecordRow, readRecords } from "./statements/transaction.ts";
import { preferOrder } from "./statements/transaction-page.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Signers are `0x` and lower-case hex: above the first, below the second. */
const BEFORE_ALL = { signer: "", chainId: 0 };
const BEYOND_ALL = "1";

export class Queries {
  private readonly connections: Pick<Connections, "read">;

  constructor(connections: Pick<Connections, "read">) {
    this.connections = connections;
  }

  async transaction(txId: string): Promise<TransactionRecord | null> {
    if (!UUID.test(txId)) return null;
    const { records, aliases } = await this.records([txId]);
    const aliased = aliases.get(txId.toLowerCase());
    if (aliased !== undefined) return this.transaction(aliased);
    return records.get(txId.toLowerCase()) ?? null;
  }

  async transactionAt(lane: Lane, nonce: number): Promise<TransactionRecord | null> {
    const [found] = await this.connections.read((run) => run(findByNonce, [lane.chainId, lane.signer, nonce]));
    return found === undefined ? null : this.transaction(found.tx_id);
  }

  async transactions(filter: ListFilter): Promise<readonly TransactionRecord[]> {
    const ids = await findPage(this.connections, filter);
    if (ids.length === 0) return [];
    const { records } = await this.records(isNarrow(filter) ? ids : ids.slice(0, filter.limit));
    const page = ids.flatMap((id) => records.get(id) ?? []);
    return isNarrow(filter) ? page.filter((record) => matches(record, filter)).slice(0, filter.limit) : page;
  }

  async history(txId: string): Promise<readonly HistoryRecord[]> {
    if (!UUID.test(txId)) return [];
    const [rows, [intake]] = await this.connections.read((run) =>
      Promise.all([run(readHistory, [txId]), run(readIntakeRecords, [[txId]])]),
    );
    if (rows.length > 0 || intake === undefined) return rows.map(historyRecord);
    return intake.alias_of === null ? [acceptance(intake)] : this.history(intake.alias_of);
  }

  async confirmations(chainId: number, aboveBlock: number, limit: number) {
    const rows = await this.connections.read((run) => run(readConfirmations, [chainId, aboveBlock + 1, limit]));
    return rows.map(blockOf);
  }

  async feed(after: number, limit: number): Promise<FeedPage> {
    const [[row], items] = await this.connections.read((run) =>
      Promise.all([run(readFeed, []), run(readCompletions, [after, limit])]),
    );
    if (row === undefined) throw new Error("the feed has no counter: the schema is damaged");
    return {
      epoch: row.epoch,
      lastSeq: row.last_seq,
      truncatedThrough: row.truncated_through,
      epochStartsAfter: row.epoch_starts_after,
      items: items.map(completionRecord),
    };
  }

  async laneDecisions({ chainId, signer }: Lane, limit: number): Promise<readonly LaneDecisionRecord[]> {
    const rows = await this.connections.read((run) => run(readLaneDecisions, [signer, chainId, limit]));
    return rows.map(({ node_id: nodeId, ...decision }) => ({ ...decision, nodeId }));
  }

  async lanes(signer: Address): Promise<readonly LaneRecord[]> {
    const [, rows, holes] = await this.connections.read((run) =>
      Promise.all([run(preferOrder, []), run(listLanes, [signer, 0, signer, null]), run(listHoles, [signer, signer])]),
    );
    return rows.map((row) => laneRecord(row, holes));
  }

  async lanesAfter(after: Lane | null, limit: number): Promise<readonly LaneRecord[]> {
    const from = after ?? BEFORE_ALL;
    const [, rows] = await this.connections.read((run) =>
      Promise.all([run(preferOrder, []), run(listLanes, [from.signer, from.chainId, BEYOND_ALL, limit])]),
    );
    const [first, last] = [rows[0], rows.at(-1)];
    if (first === undefined || last === undefined) return [];
    const holes = await this.connections.read((run) => run(listHoles, [first.signer, last.signer]));
    return rows.map((row) => laneRecord(row, holes));
  }

  async reservation(reservationId: string): Promise<Reservation | null> {
    if (!UUID.test(reservationId)) return null;
    const [row] = await this.connections.read((run) => run(readReservation, [reservationId]));
    return row === undefined ? null : reservationAt(reservationOf(row), row.asked_at);
  }

  async liveStates(): Promise<ReadonlyMap<State, number>> {
    const rows = await this.connections.read((run) => run(countLiveStates, []));
    return new Map(rows.map((row) => [row.state as State, row.count]));
  }

  /** What these ids name: transactions, waiting intake rows, and which ids are other names. */
  private async records(ids: readonly string[]) {
    const [rows, intake, attempts, receipts] = await this.connections.read((run) =>
      Promise.all([
        run(readRecords, [ids]),
        run(readIntakeRecords, [ids]),
        run(readAttempts, [ids]),
        run(readReceipts, [ids]),
      ]),
    );
    const attemptsOf = groupByTransaction(attempts);
    const receiptsOf = new Map(receipts.map((row) => [row.tx_id, receiptOf(row)]));
    const records = new Map<string, TransactionRecord>();
    for (const row of intake) if (row.alias_of === null) records.set(row.tx_id, createdRecord(row));
    for (const row of rows) {
      const attempts = (attemptsOf.get(row.tx_id) ?? []).map(attemptRecord);
      records.set(row.tx_id, { ...transactionRecord(row), attempts, receipt: receiptsOf.get(row.tx_id) ?? null });
    }
    const aliases = new Map(
      intake.flatMap((row) => (row.alias_of === null ? [] : [[row.tx_id, row.alias_of] as const])),
    );
    return { records, aliases };
  }
}

function transactionRecord(row: RecordRow): Omit<TransactionRecord, "attempts" | "receipt"> {
  return {
    txId: row.tx_id,
    lane: laneOf(row),
    requestId: row.request_id,
    nonce: row.nonce,
    state: row.state as State,
    subState: row.sub_state as SubState | null,
    payload: payloadOf(row),
    gas: row.gas_limit === null ? null : BigInt(row.gas_limit),
    metadata: row.metadata,
    lastError: row.last_error,
    submitAttempts: row.submit_attempts,
    lastSubmittedAt: row.last_submitted_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    confirmedAt: row.confirmed_at,
  };
}

function createdRecord(row: IntakeRecordRow): TransactionRecord {
  return {
    txId: row.tx_id,
    lane: laneOf(row),
    requestId: row.request_id,
    nonce: null,
    state: "CREATED",
    subState: null,
    payload: payloadOf(row),
    gas: null,
    metadata: row.metadata,
    attempts: [],
    receipt: null,
    lastError: null,
    submitAttempts: 0,
    lastSubmittedAt: null,
    createdAt: row.created_at,
    updatedAt: row.created_at,
    confirmedAt: null,
  };
}

function attemptRecord(row: AttemptRow): AttemptRecord {
  return { ...attemptOf(row), createdAt: row.created_at, firstSentAt: row.first_sent_at };
}

function historyRecord(row: HistoryRow): HistoryRecord {
  return {
    ordinal: row.ordinal,
    event: row.event as TransitionEvent,
    fromState: row.from_state as State | null,
    state: row.state as State,
    subState: row.sub_state as SubState | null,
    nodeId: row.node_id,
    token: row.token,
    reason: row.reason,
    ...(row.actor === null ? {} : { decision: { actor: row.actor, audit: row.audit } }),
    count: row.count,
    firstAt: row.first_at,
    lastAt: row.last_at,
  };
}

/** The one thing that has happened to an intake row. Its caller wrote it, with no history of its own. */
function acceptance(row: IntakeRecordRow): HistoryRecord {
  return {
    ordinal: 1,
    event: "accept",
    fromState: null,
    state: "CREATED",
    subState: null,
    nodeId: null,
    token: null,
    reason: null,
    count: 1,
    firstAt: row.created_at,
    lastAt: row.created_at,
  };
}

function completionRecord(row: CompletionRow): CompletionRecord {
  return {
    seq: row.seq,
    epoch: row.epoch,
    txId: row.tx_id,
    lane: laneOf(row),
    requestId: row.request_id,
    nonce: row.nonce,
    state: row.state as CompletionState,
    subState: row.sub_state as SubState | null,
    settled: row.settled,
    txHash: row.tx_hash as Hash | null,
    at: row.at,
  };
}

function laneRecord(row: LaneListRow, holes: readonly HoleRow[]): LaneRecord {
  const head = row.head_of_line;
  return {
    lane: laneOf(row),
    cursor: row.next_nonce,
    suspendedBy: row.suspended_by,
    owner: ownerOf(row),
    token: row.token,
    acquiredAt: row.acquired_at,
    pending: row.pending,
    confirmed: row.confirmed_total,
    failed: row.failed_total,
    stuck: row.stuck,
    reserved: row.reserved,
    holes: holes.filter((hole) => hole.signer === row.signer && hole.chain_id === row.chain_id).map(holeOf),
    oldestPendingAt: row.oldest_pending_at,
    headOfLine:
      head === null
        ? null
        : { txId: head.txId, nonce: head.nonce, state: head.state as State, createdAt: new Date(head.createdAt) },
  };
}
