/**
 * Which transactions of a lane wait for a block, of those API keys that may fill a part of its queue only. A key is counted
 * from its first create on under this term, when what it has waiting is read from the database; where no key has a share,
 * nothing is kept here. What a deep reorg brings back after it was final is not counted again: its key is not known then.
 */
import type { Change, Moved } from "../../domain/ledger/index.ts";
import { isSettled } from "../../domain/transaction/transitions.ts";
import type { OpenTransaction } from "../../ports/lane-store.ts";

type Read = () => Promise<readonly OpenTransaction[]>;

export class QueueShares {
  private readonly shares = new Map<string, { readonly share: QueueShare; readonly known: Promise<void> }>();
  /** For each share that is being read: what moved on meanwhile, and may have been read as it was before. */
  private readonly reading = new Set<Moved[]>();

  /** What waits of this key. `read`: all of it that is not final, as the database has it. */
  async of(owner: string, read: Read): Promise<QueueShare> {
    const { share, known } = this.shares.get(owner) ?? this.begin(owner, read);
    await known;
    return share;
  }

  /** What a commit did to the lane. */
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
    // Nothing is known of it: the next create reads again.
    known.catch(() => this.shares.delete(owner));
    return { share, known };
  }
}

/** What one key has waiting on a lane, by ids. */
export class QueueShare {
  /** Not mined, or let in and without a fate yet. */
  private readonly unmined = new Set<string>();
  /** May have to wait again. */
  private readonly mined = new Set<string>();

  get size(): number {
    return this.unmined.size;
  }

  enter(txId: string): void {
    this.unmined.add(txId);
  }

  /** It was let in, and nothing was made of it. */
  leave(txId: string): void {
    this.unmined.delete(txId);
  }

  /** As the database had it, and what moved on since then. */
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
