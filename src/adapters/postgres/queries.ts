/** QueryStore on PostgreSQL: reads for callers and operators. Pages are found as ids first, then read by key. */
import type { Address, Lane } from "../../domain/lane.ts";
import { reservationAt } from "../../domain/ledger/index.ts";
import type { Reservation } from "../../domain/reservations.ts";
import type { State } from "../../domain/transitions.ts";
import type {
  FeedPage,
  HistoryRecord,
  LaneDecisionRecord,
  LaneRecord,
  ListFilter,
  TransactionRecord,
} from "../../ports/query-store.ts";
import { withLane, withOwner, withPayload } from "./columns.ts";
import { findPage, isNarrow, matches } from "./pages.ts";
import { attemptRecord, groupByTransaction, holeOf, receiptsOf, reservationOf } from "./rows.ts";
import type { Connections } from "./session/connections.ts";
import { readAttempts } from "./statements/attempt.ts";
import { readConfirmations } from "./statements/confirmation.ts";
import { readCompletions, readFeed } from "./statements/feed.ts";
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
    return found === undefined ? null : this.transaction(found.txId);
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
    return intake.aliasOf === null ? [acceptance(intake)] : this.history(intake.aliasOf);
  }

  async confirmations(chainId: number, aboveBlock: number, limit: number) {
    const rows = await this.connections.read((run) => run(readConfirmations, [chainId, aboveBlock + 1, limit]));
    return rows;
  }

  async feed(after: number, limit: number): Promise<FeedPage> {
    const [[row], items] = await this.connections.read((run) =>
      Promise.all([run(readFeed, []), run(readCompletions, [after, limit])]),
    );
    if (row === undefined) throw new Error("the feed has no counter: the schema is damaged");
    return { ...row, items: items.map(withLane) };
  }

  async laneDecisions({ chainId, signer }: Lane, limit: number): Promise<readonly LaneDecisionRecord[]> {
    return this.connections.read((run) => run(readLaneDecisions, [signer, chainId, limit]));
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
    return row === undefined ? null : reservationAt(reservationOf(row), row.askedAt);
  }

  async liveStates(): Promise<ReadonlyMap<State, number>> {
    const rows = await this.connections.read((run) => run(countLiveStates, []));
    return new Map(rows.map((row) => [row.state, row.count]));
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
    const receiptOf = receiptsOf(receipts);
    const records = new Map<string, TransactionRecord>();
    const aliases = new Map<string, string>();
    for (const { aliasOf, ...row } of intake) {
      if (aliasOf !== null) aliases.set(row.txId, aliasOf);
      else records.set(row.txId, { ...transactionRecord(row), attempts: [], receipt: null });
    }
    for (const row of rows) {
      const attempts = (attemptsOf.get(row.txId) ?? []).map(attemptRecord);
      records.set(row.txId, { ...transactionRecord(row), attempts, receipt: receiptOf.get(row.txId) ?? null });
    }
    return { records, aliases };
  }
}

function transactionRecord(row: RecordRow): Omit<TransactionRecord, "attempts" | "receipt"> {
  const { gasLimit: gas, ...record } = withPayload(withLane(row));
  return { ...record, gas };
}

function historyRecord({ actor, audit, ...row }: HistoryRow): HistoryRecord {
  return actor === null ? row : { ...row, decision: { actor, audit } };
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
    firstAt: row.createdAt,
    lastAt: row.createdAt,
  };
}

function laneRecord({ headOfLine: head, ...row }: LaneListRow, holes: readonly HoleRow[]): LaneRecord {
  return {
    ...withOwner(withLane(row)),
    holes: holes.filter((hole) => hole.signer === row.signer && hole.chainId === row.chainId).map(holeOf),
    headOfLine: head && { ...head, createdAt: new Date(head.createdAt) },
  };
}
