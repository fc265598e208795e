/**
 * Logs of new blocks (`eth_subscribe`, `logs`), block by block and in order: asked for by the block's hash, so that they are of that
 * block and no other, in the name of who subscribed. Logs of blocks that a reorg dropped are told again, as removed. None is left
 * out in silence: where a block's logs are not to be had, the subscription fails.
 */
import type { Clock } from "../../../ports/clock.ts";
import type { Held } from "../held-bytes.ts";
import type { NewHead } from "../rpc/head-announcer.ts";

type Log = Readonly<Record<string, unknown>>;

export interface LogSubscriptionOptions {
  readonly clock: Pick<Clock, "sleep">;
  /** Null: they are not to be had now. */
  readonly logsOf: (blockHash: string) => Promise<readonly Log[] | null>;
  readonly tell: (log: Log) => void;
  readonly fail: () => void;
  /** In the name of who subscribed. */
  readonly held: Held;
}

/** A gateway has endpoints that see a block later than another that has just told of it. */
const TRIES = 5;
const TRY_AGAIN_MS = 1_000;
/** Blocks whose logs are waited for. */
const MOST_BEHIND = 64;
/** Kept, to be told again as removed: of so many blocks, and so many together. */
const KEPT = { blocks: 64, logs: 2_000, bytes: 1024 * 1024 };

interface Told {
  readonly logs: readonly Log[];
  readonly bytes: number;
}

export class LogSubscription {
  private readonly options: LogSubscriptionOptions;
  private readonly told = new Map<string, Told>();
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
      for (const log of [...(this.told.get(gone)?.logs ?? [])].reverse()) this.options.tell({ ...log, removed: true });
      this.forget(gone);
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

  /** Those of older blocks are forgotten for it, and it as well where it is too much by itself. */
  private keep(hash: string, logs: readonly Log[]): void {
    const bytes = JSON.stringify(logs).length;
    this.told.set(hash, { logs, bytes: 0 });
    for (const oldest of [...this.told.keys()]) {
      if (this.mayKeep(bytes)) return void this.told.set(hash, { logs, bytes });
      this.forget(oldest);
    }
  }

  private mayKeep(more: number): boolean {
    const all = [...this.told.values()];
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
    this.options.held.grow(-(this.told.get(hash)?.bytes ?? 0));
    this.told.delete(hash);
  }

  private fail(): void {
    this.hasFailed = true;
    this.options.fail();
  }
}
