import type { Declaration } from "../../domain/keys/signing.ts";
import type { NonceMove } from "../../domain/nonces/holes.ts";
import type { AllocatedRecord } from "../../ports/lane-store.ts";

/** How many ALLOCATED rows are kept at hand; the rest waits in the database. */
const LIMIT = 1_024;

/** The rows in the database that are not read yet. */
interface InDatabase {
  /** The highest nonce that was allocated here and left to be read; null: none was. */
  readonly leftThrough: number | null;
  /** Took holes, and were left to a page: one that was read before they were there passes over their nonces. */
  readonly leftBelow: readonly AllocatedRecord[];
}

const UNREAD: InDatabase = { leftThrough: null, leftBelow: [] };

interface Waiting {
  /** At hand, in nonce order. Those that follow on are put into it as it is: creates come by the hundred. */
  readonly records: AllocatedRecord[];
  /** Null: nothing waits there. */
  readonly inDatabase: InDatabase | null;
  /** Above everything that was signed under this term. */
  readonly nextUnsigned: number;
}

/**
 * Transactions that wait to be signed, in nonce order: the first ones in memory, the rest in the database, read page by
 * page.
 */
export class Backlog {
  private waiting: Waiting;
  /** Declaration for the signer, by transaction id, if the nonce may have been signed for before. */
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

  /** The next transactions to sign: none from the first held one on. */
  get unheld(): readonly AllocatedRecord[] {
    const { records } = this.waiting;
    const end = records.findIndex(({ held }) => held === true);
    return end === -1 ? records : records.slice(0, end);
  }

  /** Those of a batch that wait still, up to the first that does not: nothing is signed above a nonce that was given up meanwhile. */
  stillWaiting(batch: readonly AllocatedRecord[]): readonly AllocatedRecord[] {
    const nonceOf = new Map(this.unheld.map(({ txId, nonce }) => [txId, nonce]));
    const end = batch.findIndex(({ txId, nonce }) => nonceOf.get(txId) !== nonce);
    return end === -1 ? batch : batch.slice(0, end);
  }

  /** The declaration for the signer about its nonce; undefined: this is the first payload there. */
  declaredFor({ txId, changedTo }: AllocatedRecord): Declaration | undefined {
    return changedTo ?? this.declared.get(txId);
  }

  /** Signatures for these nonces were never committed, as the database shows. */
  neverCommitted(batch: readonly AllocatedRecord[]): void {
    for (const { txId } of batch) this.declared.set(txId, "again");
  }

  /** Newly allocated rows: kept at hand while they follow on, else left to be read from the database in their turn. */
  enqueue(added: readonly AllocatedRecord[]): void {
    for (const record of added) {
      if (record.nonce <= this.atHandThrough()) continue; // a page that was read meanwhile has brought it
      const { records, inDatabase } = this.waiting;
      if (inDatabase !== null || records.length >= LIMIT) {
        const { leftThrough, leftBelow } = inDatabase ?? UNREAD;
        this.now({ inDatabase: { leftThrough: Math.max(leftThrough ?? record.nonce, record.nonce), leftBelow } });
      } else records.push(record);
    }
  }

  /** One that took a hole below what is at hand: no page will bring it, unless it was read meanwhile. */
  slipIn(record: AllocatedRecord, isSigned: boolean): void {
    const { records, inDatabase: left } = this.waiting;
    if (record.nonce > this.atHandThrough()) {
      if (left !== null) this.now({ inDatabase: { ...left, leftBelow: [...left.leftBelow, record] } });
      this.enqueue([record]);
    } else if (!isSigned && !records.some(({ txId }) => txId === record.txId)) {
      this.now({ records: [...records, record].sort((a, b) => a.nonce - b.nonce) });
    }
  }

  /** Beginning of the next page, if memory has run out and the database has more. */
  missingFrom(): number | null {
    const { records, inDatabase, nextUnsigned } = this.waiting;
    return inDatabase === null || records.length > 0 ? null : nextUnsigned;
  }

  /** False: one that took a hole while the page was on its way is missing on it. It has to be read again. */
  refill(page: readonly AllocatedRecord[], limit: number): boolean {
    const { leftThrough, leftBelow } = this.waiting.inDatabase ?? UNREAD;
    const isLast = page.length < limit;
    const readThrough = page.at(-1)?.nonce ?? 0;
    const ids = new Set(page.map(({ txId }) => txId));
    const isMissing = leftBelow.some(({ txId, nonce }) => (isLast || nonce <= readThrough) && !ids.has(txId));
    if (!isMissing) this.waiting.records.push(...page);
    // A transaction that was allocated and left while the page was read is not on it, and must not be forgotten: a
    // hole.
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

  /** Given up before they were signed: nothing of them is left. */
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
