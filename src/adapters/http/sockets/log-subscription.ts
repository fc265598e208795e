/**
 * Logs of new blocks (`eth_subscribe`, `logs`), block by block and in order. They are requested by block hash with
 * the subscriber's permissions. Logs of blocks dropped by a reorg are sent again as removed. If a block's logs are
 * not available, the subscription fails: none is skipped silently.
 */
import type { Clock } from "../../../ports/clock.ts";
import type { Held } from "../admission/held-bytes.ts";
import type { NewHead } from "../rpc/head-announcer.ts";

type Log = Readonly<Record<string, unknown>>;

export interface LogSubscriptionOptions {
  readonly clock: Pick<Clock, "sleep">;
  /** Null: not available now. */
  readonly logsOf: (blockHash: string) => Promise<readonly Log[] | null>;
  readonly notify: (log: Log) => void;
  readonly fail: () => void;
  /** Byte budget of the subscriber. */
  readonly held: Held;
}

/** A gateway's endpoints may lag behind the one that reported the block. */
const TRIES = 5;
const TRY_AGAIN_MS = 1_000;
/** Limit of blocks whose logs are outstanding. */
const MOST_BEHIND = 64;
/** Limits of the sent logs kept for a reorg. */
const KEPT = { blocks: 64, logs: 2_000, bytes: 1024 * 1024 };

interface SentLogs {
  readonly logs: readonly Log[];
  readonly bytes: number;
}

export class LogSubscription {
  private readonly options: LogSubscriptionOptions;
  private readonly sent = new Map<string, SentLogs>();
  private behind = 0;
  private last: Promise<void> = Promise.resolve();
  private hasFailed = false;

  constructor(options: LogSubscriptionOptions) {
    this.options = options;
  }

  readonly onHead = (head: NewHead): void => {
    if (++this.behind > MOST_BEHIND) this.fail();
    if (this.hasFailed) return;
    this.last = this.last.then(async () => {
      if (!this.hasFailed) await this.follow(head).catch(() => this.fail());
      this.behind--;
    });
  };

  private async follow({ header: { hash }, dropped }: NewHead): Promise<void> {
    for (const removed of dropped) {
      for (const log of [...(this.sent.get(removed)?.logs ?? [])].reverse())
        this.options.notify({ ...log, removed: true });
      this.forget(removed);
    }
    const logs = await this.logsOf(hash);
    if (logs === null) return this.fail();
    for (const log of logs) this.options.notify(log);
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

  /** Keeps logs, and drops those of older blocks for them, or these if they are too large. */
  private keep(hash: string, logs: readonly Log[]): void {
    const bytes = JSON.stringify(logs).length;
    this.sent.set(hash, { logs, bytes: 0 });
    for (const oldest of [...this.sent.keys()]) {
      if (this.mayKeep(bytes)) return void this.sent.set(hash, { logs, bytes });
      this.forget(oldest);
    }
  }

  private mayKeep(more: number): boolean {
    const all = [...this.sent.values()];
    const logs = all.reduce((sum, each) => sum + each.logs.length, 0);
    const bytes = all.reduce((sum, each) => sum + each.bytes, more);
    if (all.length > KEPT.blocks || logs > KEPT.logs || bytes > KEPT.bytes) return false;
    try {
      this.options.held.grow(more);
      return true;
    } catch {
      return false;
    }
  }

  private forget(hash: string): void {
    this.options.held.grow(-(this.sent.get(hash)?.bytes ?? 0));
    this.sent.delete(hash);
  }

  private fail(): void {
    this.hasFailed = true;
    this.options.fail();
  }
}
