import { StoreUnavailable } from "../../../../src/ports/lane-store.ts";
import { NODE_SETTINGS } from "../../world.ts";
import type { Calm } from "./calm.ts";

const RESEND_MS = 500;
const AWAY_MS = 4_000;
const COUNT = 4;

/**
 * A node cannot renew its lease, while all else works: past its own deadline it sends nothing, and asks the database for
 * no write of its lanes.
 */
export async function lostLease(calm: Calm): Promise<void> {
  const { world } = calm;
  const entry = await calm.start();
  const { durationMs, clockSkewMs } = calm.options.node?.lease ?? NODE_SETTINGS.lease;
  let deadlineMs = Number.POSITIVE_INFINITY;
  let isAway = false;
  const { store } = entry;
  const [renew, commit] = [store.renewInstance.bind(store), store.commit.bind(store)];
  store.renewInstance = async (...asked) => {
    const atMs = calm.nowMs;
    if (isAway) throw new StoreUnavailable("the database does not answer this", { busy: false });
    const answer = await renew(...asked);
    deadlineMs = atMs + durationMs - clockSkewMs;
    return answer;
  };
  const late: string[] = [];
  store.commit = (writes) => {
    const nowMs = calm.nowMs;
    if (isAway && nowMs >= deadlineMs) late.push(...writes.map(({ kind }) => `${kind} at ${nowMs} ms`));
    return commit(writes);
  };
  world.holdBlocks();
  await calm.create(entry, COUNT);
  await world.clock.advance(durationMs);
  isAway = true;
  const asked = ask(calm, AWAY_MS + durationMs, () => entry.node.api.create(calm.request()));
  await world.clock.advance(AWAY_MS + durationMs);
  const afterMs = deadlineMs;
  const sent = calm.sends.filter(({ atMs }) => atMs >= afterMs);
  calm.expect(sent.length === 0, `nothing is sent after the deadline at ${afterMs} ms, not ${sent.length} times`);
  calm.expect(late.length === 0, `no write is begun after the deadline at ${afterMs} ms: ${late.slice(0, 3)}`);
  isAway = false;
  world.releaseBlocks();
  await world.settle(asked);
  await world.until(() => world.ownerOf(world.rows()[0]?.lane.signer ?? "0x") !== undefined);
  await world.allSettled(world.rows().length);
}

/** Asks now and then, for so long, whatever the answers are. */
async function ask({ world }: Calm, forMs: number, request: () => Promise<unknown>) {
  for (let ms = 0; ms < forMs; ms += RESEND_MS) {
    void request().catch(() => undefined);
    await world.clock.sleep(RESEND_MS);
  }
}

/**
 * The database ends the session that shows others that a node lives, and takes nothing from it for a while. Others may
 * call the node dead, so it sends nothing until the database has its word that it lives.
 */
export async function lostSession(calm: Calm): Promise<void> {
  const { world, dice } = calm;
  const entry = await calm.start();
  const { store } = entry;
  let isAway = false;
  const away = () => Promise.reject(new StoreUnavailable("the database does not answer this", { busy: false }));
  const [renew, publish] = [store.renewInstance.bind(store), store.publishLock.bind(store)];
  store.renewInstance = (...asked) => (isAway ? away() : renew(...asked));
  store.publishLock = (...asked) => (isAway ? away() : publish(...asked));
  world.holdBlocks();
  await calm.create(entry, COUNT);
  await world.clock.advance(dice.int(500, 2_000));
  for (let times = 0; times < 2; times++) {
    const lostMs = calm.nowMs;
    isAway = true;
    entry.lock?.interrupt();
    await world.clock.advance(dice.int(1_000, 3_000));
    const sent = calm.sends.filter(({ atMs }) => atMs > lostMs);
    calm.expect(sent.length === 0, `${sent.length} sends without a session since ${lostMs} ms`);
    isAway = false;
    await world.clock.advance(AWAY_MS);
    calm.expect(
      calm.sends.some(({ atMs }) => atMs > lostMs),
      "with a session, sends go on",
    );
  }
  world.releaseBlocks();
  await world.allSettled(COUNT);
}
