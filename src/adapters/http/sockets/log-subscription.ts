/**
 * Logs of new blocks (`eth_subscribe`, `logs`), block by block and in order: asked for by the block's hash, so that they are of that
 * block and no other, in the name of who subscribed. Logs of blocks that a reorg dropped are told again, as removed. None is left
 * out in silence: where a block's logs are not to be had, the subscription fails.
 */
import type { Clock } from "../../../ports/clock.ts";
import type { NewHead } from "../rpc/head-announcer.ts";

type Log = Readonly<Record<string, unknown>>;

export interface LogSubscriptionOptions {
  readonly clock: Pick<Clock, "sleep">;
  /** Null: they are not to be had now. */
  readonly logsOf: (blockHash: string) => Promise<readonly Log[] | null>;
  readonly tell: (log: Log) => void;
  readonly fail: () => void;
}

/** A gateway has endpoints that see a block later than another that has just told of it. */
const TRIES = 5;
const TRY_AGAIN_MS = 1_000;
/** Blocks whose logs are waited for. */
const MOST_BEHIND = 64;
/** Kept, to be told again as removed: of so many blocks, and so many together. */
const KEPT = { blocks: 64, logs: 2_000 };

export class LogSubscription {
  private readonly options: LogSubscriptionOptions;
  private readonly told = new Map<string, readonly Log[]>();
  private behind = 0;
  private last: Promise<void> = Promise.resolve();
  private hasFailed = false;

  constructor(options: LogSubscriptionOptions) {
    this.options = options;
  }

  readonly hear = (head: NewHead): void => {
    if (++this.behind > MOST_BEHIND) this.fail();
    if (this.hasFailed) return;
    this.last = this.last.then(async () => {
      if (!this.hasFailed) await this.follow(head).catch(() => this.fail());
      this.behind--;
    });
  };

  private async follow({ header: { hash }, dropped }: NewHead): Promise<void> {
    for (const gone of dropped) {
      for (const log of [...(this.told.get(gone) ?? [])].reverse()) this.options.tell({ ...log, removed: true });
      this.told.delete(gone);
    }
    const logs = await this.logsOf(hash);
    if (logs === null) return this.fail();
    for (const log of logs) this.options.tell(log);
    if (logs.length > 0) this.keep(hash, logs);
  }

  private async logsOf(hash: string): Promise<readonly Log[] | null> {
    for (let tries = 1; tries < TRIES; tries++) {
      const logs = await this.options.logsOf(hash);
      if (logs !== null) return logs;
      await this.options.clock.sleep(TRY_AGAIN_MS);
    }
    return this.options.logsOf(hash);
  }

  private keep(hash: string, logs: readonly Log[]): void {
    this.told.set(hash, logs);
    let count = [...this.told.values()].reduce((sum, each) => sum + each.length, 0);
    for (const [oldest, each] of this.told) {
      if (count <= KEPT.logs && this.told.size <= KEPT.blocks) return;
      this.told.delete(oldest);
      count -= each.length;
    }
  }

  private fail(): void {
    this.hasFailed = true;
    this.options.fail();
  }
}
