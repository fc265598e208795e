/**
 * Counts, per API key, the transactions of a lane that wait for a block, for keys that may fill only a part of the
 * lane's queue. The count begins with the key's first create after this node acquired the lane, when the key's waiting
 * transactions are read from the database. If no key has such a limit, nothing is counted. A final transaction that a
 * deep reorg reopens is not counted again, because its key is not known then.
 */
import type { Change, Moved } from "../../domain/ledger/index.ts";
import { isSettled } from "../../domain/transaction/transitions.ts";
import type { OpenTransaction } from "../../ports/lane-store.ts";

type Read = () => Promise<readonly OpenTransaction[]>;

export class QueueShares {
  private readonly shares = new Map<string, { readonly share: QueueShare; readonly known: Promise<void> }>();
  /** For each key that is being read from the database: changes committed meanwhile, which the read may not include. */
  private readonly reading = new Set<Moved[]>();

  /**
   * Returns the queue share of this API key, with its waiting transactions. `read` returns all of the key's
   * transactions in the database that are not final.
   */
  async of(owner: string, read: Read): Promise<QueueShare> {
    const { share, known } = this.shares.get(owner) ?? this.begin(owner, read);
    await known;
    return share;
  }

  /** Applies the changes of a commit to the lane. */
  fold(changes: readonly Change[]): void {
    if (this.shares.size === 0) return;
    for (const change of changes) {
      if (change.kind === "allocated" && change.intent.owner !== null) {
        this.shares.get(change.intent.owner)?.share.enter(change.intent.txId);
      }
      if (change.kind !== "moved") continue;
      for (const { share } of this.shares.values()) share.moved(change);
      for (const meanwhile of this.reading) meanwhile.push(change);
    }
  }

  private begin(owner: string, read: Read) {
    const share = new QueueShare();
    const meanwhile: Moved[] = [];
    this.reading.add(meanwhile);
    const known = read()
      .then((open) => share.found(open, meanwhile))
      .finally(() => this.reading.delete(meanwhile));
    this.shares.set(owner, { share, known });
    // The read failed, so nothing is known about this key: its next create reads again.
    known.catch(() => this.shares.delete(owner));
    return { share, known };
  }
}

/** Waiting transactions of one key on a lane, by id. */
export class QueueShare {
  /** Transactions that are not mined, including creates that were admitted and have no result yet. */
  private readonly unmined = new Set<string>();
  /** Mined transactions. After a reorg they may wait for a block again. */
  private readonly mined = new Set<string>();

  get size(): number {
    return this.unmined.size;
  }

  enter(txId: string): void {
    this.unmined.add(txId);
  }

  /** Called if a create was admitted but resulted in no transaction. */
  leave(txId: string): void {
    this.unmined.delete(txId);
  }

  /** Applies the state read from the database, and the changes since that read. */
  found(open: readonly OpenTransaction[], since: readonly Moved[]): void {
    for (const { txId, isMined } of open) (isMined ? this.mined : this.unmined).add(txId);
    for (const change of since) this.moved(change);
  }

  moved({ item: { txId, to, subState } }: Moved): void {
    const isMined = subState === "MINED";
    if (isSettled(to)) this.mined.delete(txId);
    if ((isMined || isSettled(to)) && this.unmined.delete(txId) && isMined) this.mined.add(txId);
    if (!isMined && !isSettled(to) && this.mined.delete(txId)) this.unmined.add(txId);
  }
}
