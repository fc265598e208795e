import type { Address } from "../../../../src/domain/lane.ts";
import { SIGNERS, type WorldNode } from "../../world.ts";
import type { Calm } from "./calm.ts";

const THIN_EVERY_MS = 10;
const THIN = 40;
/** Writes of a transaction, if a node is to have more than full ones. */
export const SMALL_BATCH = 4;
const PAUSE_MS = 20_000;
/** A create among few others waits for a commit or two, and not for company. */
const AT_ONCE_MS = 3;
/** It is sent after a commit or two more. */
const SENT_MS = 8;
/** After a crowd, a create may wait for the last of it, and no longer. */
const AFTER_CROWD_MS = 100;
const STEADY = 550;
const STEADY_FROM = 400;
/** Commits of a crowd that comes for so long: one in 16 ms, one of moves in 40 ms, and those that a pause has earned. */
const STEADY_COMMITS = 45;

/**
 * Callers come one by one, then in a crowd, then one by one again. Few never wait; many share their commits, however long
 * the pause before was; and the last of a crowd waits no longer than the others.
 */
export async function flows(calm: Calm): Promise<void> {
  const { world } = calm;
  const entry = await calm.start();
  let commits = 0;
  const commit = entry.store.commit.bind(entry.store);
  entry.store.commit = (writes) => {
    commits++;
    return commit(writes);
  };
  await calm.create(entry, 1);
  await oneByOne(calm, entry, "at first");
  await world.clock.advance(PAUSE_MS);
  const made: Promise<Made>[] = [];
  let before = 0;
  for (let count = 0; count < STEADY; count++) {
    if (count === STEADY_FROM) before = commits;
    made.push(madeBy(calm, entry, count));
    await world.clock.advance(1);
  }
  const isShared = commits - before <= STEADY_COMMITS || calm.options.node?.writer?.batchSize === SMALL_BATCH;
  calm.expect(isShared, `a crowd shares its commits, ${commits - before} are too many`);
  await world.settle(Promise.all(made));
  const last = await world.settle(madeBy(calm, entry));
  await world.clock.advance(2 * AFTER_CROWD_MS);
  const afterMs = (calm.sendsOf(last.txId)[0]?.atMs ?? Number.POSITIVE_INFINITY) - last.atMs;
  calm.expect(afterMs <= AFTER_CROWD_MS, `what is created right after a crowd is sent after ${afterMs} ms`);
  await world.clock.advance(PAUSE_MS);
  await oneByOne(calm, entry, "after a crowd");
  await world.allSettled(world.rows().length);
}

async function oneByOne(calm: Calm, entry: WorldNode, when: string) {
  const asked: Promise<Made>[] = [];
  for (let count = 0; count < THIN; count++) {
    asked.push(madeBy(calm, entry, count));
    await calm.world.clock.advance(THIN_EVERY_MS);
  }
  const made = await calm.world.settle(Promise.all(asked));
  const answeredMs = Math.max(...made.map(({ waitedMs }) => waitedMs));
  calm.expect(answeredMs <= AT_ONCE_MS, `${when}, a create among few others waits ${answeredMs} ms`);
  await calm.world.clock.advance(AFTER_CROWD_MS);
  const sentMs = Math.max(...made.map(({ txId, atMs }) => (calm.sendsOf(txId)[0]?.atMs ?? Number.NaN) - atMs));
  calm.expect(sentMs <= SENT_MS, `${when}, what is created among few others is sent after ${sentMs} ms`);
}

interface Made {
  readonly txId: string;
  /** When it was asked for, and how long the caller waited for the answer. */
  readonly atMs: number;
  readonly waitedMs: number;
}

async function madeBy(calm: Calm, entry: WorldNode, count = 0): Promise<Made> {
  const atMs = calm.nowMs;
  const { txId } = await entry.node.api.create(calm.request({ signer: SIGNERS[count % SIGNERS.length] as Address }));
  return { txId, atMs, waitedMs: calm.nowMs - atMs };
}
