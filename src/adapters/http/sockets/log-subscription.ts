/**
 * Sends logs of new blocks (`eth_subscribe`, `logs`), block by block and in order. The logs are requested by block hash
 * with the subscriber's permissions. Logs of blocks dropped by a reorg are sent again as removed. If a block's logs are
 * not available, the subscription fails, so that no log is skipped silently.
 */
import type { Clock } from "../../../ports/clock.ts";
import type { Held } from "../admission/held-bytes.ts";
import type { HeadListener, NewHead } from "../rpc/head-announcer.ts";

type Log = Readonly<Record<string, unknown>>;

interface LogSubscriptionOptions {
  readonly clock: Pick<Clock, "sleep">;
  /** Reads the logs of a block; null if they are not available now. */
  readonly logsOf: (blockHash: string) => Promise<readonly Log[] | null>;
  readonly notify: (log: Log) => void;
  readonly fail: () => void;
  /** Memory budget of the subscriber, in bytes. */
  readonly held: Held;
}

/**
 * Number of times that a block's logs are requested: a gateway's endpoints may lag behind the one that reported the
 * block.
 */
const TRIES = 5;
const TRY_AGAIN_MS = 1_000;
/** Largest number of blocks whose logs are outstanding. */
const MOST_BEHIND = 64;

export function logSubscription({ clock, logsOf, notify, fail, held }: LogSubscriptionOptions): HeadListener {
  const sent = sentLogs(held);
  let behind = 0;
  let last = Promise.resolve();
  let hasFailed = false;
  const giveUp = () => {
    hasFailed = true;
    fail();
  };
  const follow = async ({ header: { hash }, dropped }: NewHead) => {
    for (const log of dropped.flatMap((removed) => sent.forget(removed).toReversed()))
      notify({ ...log, removed: true });
    let logs = await logsOf(hash);
    for (let tries = 1; logs === null && tries < TRIES; tries++) {
      await clock.sleep(TRY_AGAIN_MS);
      logs = await logsOf(hash);
    }
    if (logs === null) return giveUp();
    for (const log of logs) notify(log);
    if (logs.length > 0) sent.keep(hash, logs);
  };
  return (head) => {
    if (++behind > MOST_BEHIND) giveUp();
    if (hasFailed) return;
    last = last.then(async () => {
      if (!hasFailed) await follow(head).catch(giveUp);
      behind--;
    });
  };
}

/** Limits on the sent logs that are kept in memory. After a reorg they are sent again as removed. */
const KEPT = { blocks: 64, logs: 2_000, bytes: 1024 * 1024 };

function sentLogs(held: Held) {
  const sent = new Map<string, { readonly logs: readonly Log[]; readonly bytes: number }>();
  const forget = (hash: string) => {
    const { logs, bytes } = sent.get(hash) ?? { logs: [], bytes: 0 };
    held.grow(-bytes);
    sent.delete(hash);
    return logs;
  };
  const mayKeep = (more: number) => {
    const all = [...sent.values()];
    const logs = all.reduce((sum, each) => sum + each.logs.length, 0);
    const bytes = all.reduce((sum, each) => sum + each.bytes, more);
    return all.length <= KEPT.blocks && logs <= KEPT.logs && bytes <= KEPT.bytes && held.grow(more) === null;
  };
  return {
    forget,
    /**
     * Keeps the logs of a block. Logs of older blocks are dropped to make space; if the new logs are too large, they
     * are dropped themselves.
     */
    keep: (hash: string, logs: readonly Log[]) => {
      const bytes = JSON.stringify(logs).length;
      sent.set(hash, { logs, bytes: 0 });
      for (const oldest of [...sent.keys()]) {
        if (mayKeep(bytes)) return void sent.set(hash, { logs, bytes });
        forget(oldest);
      }
    },
  };
}
