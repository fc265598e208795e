import type { Declaration } from "../../domain/keys/signing.ts";
import type { NonceMove } from "../../domain/nonces/holes.ts";
import type { AllocatedRecord } from "../../ports/lane-store.ts";

/** Maximum number of ALLOCATED rows kept in memory; the rest waits in the database. */
const LIMIT = 1_024;

/** State of the rows that wait in the database and were not read into memory yet. */
interface InDatabase {
  /**
   * The highest nonce that this node allocated without keeping the row in memory, because memory was full or lower rows
   * wait in the database; null if there is none. Rows up to this nonce are read from the database later.
   */
  readonly leftThrough: number | null;
  /**
   * Rows that filled holes and will be read from the database with a later page. A page that was read before they were
   * written does not contain them and must be read again.
   */
  readonly leftBelow: readonly AllocatedRecord[];
}

const UNREAD: InDatabase = { leftThrough: null, leftBelow: [] };

interface Waiting {
  /**
   * Rows in memory, in nonce order. New rows are appended to the same array instead of a copy, because creates arrive
   * by the hundred.
   */
  readonly records: AllocatedRecord[];
  /** Rows that wait in the database; null if there are none. */
  readonly inDatabase: InDatabase | null;
  /** The lowest nonce above all nonces that this node signed for since it acquired the lane. */
  readonly nextUnsigned: number;
}

/**
 * Transactions that wait to be signed, in nonce order: the first ones in memory, the rest in the database, read page by
 * page.
 */
export class Backlog {
  private waiting: Waiting;
  /**
   * What to declare to the signer, by transaction id. Has entries only for transactions at whose nonce the signer may
   * already have signed a payload.
   */
  private readonly declared = new Map<string, Declaration>();

  constructor(waitsInDatabase: boolean) {
    this.waiting = { records: [], inDatabase: waitsInDatabase ? UNREAD : null, nextUnsigned: 0 };
  }

  get isEmpty(): boolean {
    return this.waiting.records.length === 0 && this.waiting.inDatabase === null;
  }

  get atHand(): readonly AllocatedRecord[] {
    return this.waiting.records;
  }

  /** The next transactions to sign: those below the first one that is put on hold. */
  get unheld(): readonly AllocatedRecord[] {
    const { records } = this.waiting;
    const end = records.findIndex(({ held }) => held === true);
    return end === -1 ? records : records.slice(0, end);
  }

  /**
   * The transactions of a batch that still wait to be signed, up to the first that does not. Later ones are left out,
   * because nothing may be signed above a nonce that was given up meanwhile.
   */
  stillWaiting(batch: readonly AllocatedRecord[]): readonly AllocatedRecord[] {
    const nonceOf = new Map(this.unheld.map(({ txId, nonce }) => [txId, nonce]));
    const end = batch.findIndex(({ txId, nonce }) => nonceOf.get(txId) !== nonce);
    return end === -1 ? batch : batch.slice(0, end);
  }

  /** What to declare to the signer about the transaction's nonce; undefined for the first payload at that nonce. */
  declaredFor({ txId, changedTo }: AllocatedRecord): Declaration | undefined {
    return changedTo ?? this.declared.get(txId);
  }

  /**
   * Called when the database shows that earlier signatures for these nonces were never committed: the next signatures
   * are declared to the signer as repeats.
   */
  neverCommitted(batch: readonly AllocatedRecord[]): void {
    for (const { txId } of batch) this.declared.set(txId, "again");
  }

  /**
   * Adds newly allocated rows. A row is kept in memory if there is space and no lower row waits in the database alone.
   * Otherwise it is read from the database later, before it is signed.
   */
  enqueue(added: readonly AllocatedRecord[]): void {
    for (const record of added) {
      if (record.nonce <= this.atHandThrough()) continue; // a page that was read meanwhile already contains this row
      const { records, inDatabase } = this.waiting;
      if (inDatabase !== null || records.length >= LIMIT) {
        const { leftThrough, leftBelow } = inDatabase ?? UNREAD;
        this.now({ inDatabase: { leftThrough: Math.max(leftThrough ?? record.nonce, record.nonce), leftBelow } });
      } else records.push(record);
    }
  }

  /**
   * Inserts a row that filled a hole below the rows in memory. Later pages from the database do not contain the row,
   * but a page that was read at the same time may.
   */
  slipIn(record: AllocatedRecord, isSigned: boolean): void {
    const { records, inDatabase: left } = this.waiting;
    if (record.nonce > this.atHandThrough()) {
      if (left !== null) this.now({ inDatabase: { ...left, leftBelow: [...left.leftBelow, record] } });
      this.enqueue([record]);
    } else if (!isSigned && !records.some(({ txId }) => txId === record.txId)) {
      this.now({ records: [...records, record].sort((a, b) => a.nonce - b.nonce) });
    }
  }

  /** First nonce of the next page, if memory is empty and the database has more rows; else null. */
  missingFrom(): number | null {
    const { records, inDatabase, nextUnsigned } = this.waiting;
    return inDatabase === null || records.length > 0 ? null : nextUnsigned;
  }

  /**
   * Adds a page of rows from the database. Returns false if a row that filled a hole during the read is missing from
   * the page: the page must be read again.
   */
  refill(page: readonly AllocatedRecord[], limit: number): boolean {
    const { leftThrough, leftBelow } = this.waiting.inDatabase ?? UNREAD;
    const isLast = page.length < limit;
    const readThrough = page.at(-1)?.nonce ?? 0;
    const ids = new Set(page.map(({ txId }) => txId));
    const isMissing = leftBelow.some(({ txId, nonce }) => (isLast || nonce <= readThrough) && !ids.has(txId));
    if (!isMissing) this.waiting.records.push(...page);
    // A transaction that was allocated while the page was read, and was not kept in memory, is not on the page. Without
    // this check it would be forgotten and become a hole.
    const hasMore = isMissing || !isLast || (leftThrough !== null && leftThrough > this.atHandThrough());
    this.now({ inDatabase: hasMore ? { leftThrough, leftBelow: [] } : null });
    return !isMissing;
  }

  signed(batch: readonly AllocatedRecord[]): void {
    const { records, nextUnsigned } = this.waiting;
    const ids = new Set(batch.map(({ txId }) => txId));
    if (this.declared.size > 0) for (const txId of ids) this.declared.delete(txId);
    this.now({
      records: records.filter(({ txId }) => !ids.has(txId)),
      nextUnsigned: Math.max(nextUnsigned, (batch.at(-1)?.nonce ?? -1) + 1),
    });
  }

  /** Removes rows that were given up before they were signed. */
  drop(...dropped: readonly Pick<AllocatedRecord, "txId">[]): void {
    const ids = new Set(dropped.map(({ txId }) => txId));
    for (const txId of ids) this.declared.delete(txId);
    this.now({ records: this.waiting.records.filter(({ txId }) => !ids.has(txId)) });
  }

  shifted(moves: readonly NonceMove[]): void {
    const to = new Map(moves.map((move) => [move.txId, move.to]));
    for (const txId of to.keys()) this.declared.set(txId, "shift-down");
    const moved = this.waiting.records.map((record) => ({ ...record, nonce: to.get(record.txId) ?? record.nonce }));
    this.now({ records: moved });
  }

  private now(changed: Partial<Waiting>) {
    this.waiting = { ...this.waiting, ...changed };
  }

  private atHandThrough() {
    const { records, nextUnsigned } = this.waiting;
    return records.at(-1)?.nonce ?? nextUnsigned - 1;
  }
}
