import type { NonceMove } from "../../domain/holes.ts";
import type { AllocatedRecord } from "../../ports/lane-store.ts";

/** How many ALLOCATED rows are kept at hand; the rest waits in the database. */
const LIMIT = 1_024;

/** What waits there to be read. */
interface InDatabase {
  /** The highest nonce that was allocated here and left to be read; null: none was. */
  readonly leftThrough: number | null;
  /** Took holes, and were left to a page: one that was read before they were there passes over their nonces. */
  readonly leftBelow: readonly AllocatedRecord[];
}

const UNREAD: InDatabase = { leftThrough: null, leftBelow: [] };

/** What waits to be signed, in nonce order: the first of it at hand, the rest in the database, read page by page. */
export class Backlog {
  private records: AllocatedRecord[] = [];
  private inDatabase: InDatabase | null;
  private nextUnsigned = 0;

  constructor(waitsInDatabase: boolean) {
    this.inDatabase = waitsInDatabase ? UNREAD : null;
  }

  get isEmpty(): boolean {
    return this.records.length === 0 && this.inDatabase === null;
  }

  get atHand(): readonly AllocatedRecord[] {
    return this.records;
  }

  /** Newly allocated rows: kept at hand while they follow on, else left to be read from the database in their turn. */
  enqueue(records: readonly AllocatedRecord[]): void {
    for (const record of records) {
      if (record.nonce <= this.atHandThrough()) continue; // a page that was read meanwhile has brought it
      if (this.inDatabase !== null || this.records.length >= LIMIT) {
        const { leftThrough, leftBelow } = this.inDatabase ?? UNREAD;
        this.inDatabase = { leftThrough: Math.max(leftThrough ?? record.nonce, record.nonce), leftBelow };
      } else this.records.push(record);
    }
  }

  /** One that took a hole below what is at hand: no page will bring it, unless it was read meanwhile. */
  slipIn(record: AllocatedRecord, isSigned: boolean): void {
    if (record.nonce > this.atHandThrough()) {
      const left = this.inDatabase;
      if (left !== null) this.inDatabase = { ...left, leftBelow: [...left.leftBelow, record] };
      this.enqueue([record]);
    } else if (!isSigned && !this.records.some(({ txId }) => txId === record.txId)) {
      this.records.push(record);
      this.records.sort((a, b) => a.nonce - b.nonce);
    }
  }

  /** Where the next page begins, where what was at hand has run out and the database has more. */
  missingFrom(): number | null {
    return this.inDatabase === null || this.records.length > 0 ? null : this.nextUnsigned;
  }

  /** False: one that took a hole while the page was on its way is missing on it. It has to be read again. */
  refill(page: readonly AllocatedRecord[], limit: number): boolean {
    const { leftThrough, leftBelow } = this.inDatabase ?? UNREAD;
    const isLast = page.length < limit;
    const readThrough = page.at(-1)?.nonce ?? 0;
    const ids = new Set(page.map(({ txId }) => txId));
    const isMissing = leftBelow.some(({ txId, nonce }) => (isLast || nonce <= readThrough) && !ids.has(txId));
    if (!isMissing) this.records.push(...page);
    // What was allocated and left while the page was on its way is not on it, and must not be forgotten: a hole.
    const hasMore = isMissing || !isLast || (leftThrough !== null && leftThrough > this.atHandThrough());
    this.inDatabase = hasMore ? { leftThrough, leftBelow: [] } : null;
    return !isMissing;
  }

  signed(batch: readonly AllocatedRecord[]): void {
    const last = batch.at(-1);
    if (last !== undefined) this.nextUnsigned = Math.max(this.nextUnsigned, last.nonce + 1);
    const ids = new Set(batch.map(({ txId }) => txId));
    this.records = this.records.filter(({ txId }) => !ids.has(txId));
  }

  /** Given up before it was signed: nothing of it is left. */
  drop(record: AllocatedRecord): void {
    this.records = this.records.filter(({ txId }) => txId !== record.txId);
  }

  shifted(moves: readonly NonceMove[]): void {
    const to = new Map(moves.map((move) => [move.txId, move.to]));
    this.records = this.records.map((record) => ({ ...record, nonce: to.get(record.txId) ?? record.nonce }));
  }

  private atHandThrough(): number {
    return this.records.at(-1)?.nonce ?? this.nextUnsigned - 1;
  }
}
