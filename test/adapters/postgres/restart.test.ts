import { execFile } from "node:child_process";
import { readdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { migrate } from "../../../src/adapters/postgres/schema/migrate.ts";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Fence } from "../../../src/domain/lane.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../src/main/dev/embedded/postgres.ts";
import { HistoryChanged, OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { allocate, anInstance, anIntent, commitOne, confirm, holdLane, nonces } from "../../support/lane-samples.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { connectClient } from "./postgres-subject.ts";

/** The store's responses to the requests: accepted (with the nonce), denied, or outcome unknown. */
interface Answers {
  readonly created: { readonly txId: string; readonly nonce: number }[];
  readonly denied: string[];
  readonly unknown: string[];
}

const CLOCK = { clock: systemClock, leaseDurationMs: 30_000 };

describe("a crashed or restored PostgreSQL server", () => {
  let directory: TemporaryDirectory;
  let server: EmbeddedPostgres;
  let store: PostgresStore;

  const start = (settings: Readonly<Record<string, string>> = {}) =>
    startEmbeddedPostgres({
      directory: directory.path,
      clock: systemClock,
      log: () => undefined,
      port: server?.port,
      settings,
    });

  beforeAll(async () => {
    directory = await makeTemporaryDirectory();
    server = await start();
    await migrate({ databaseUrl: server.url });
    store = await openPostgresStore({ ...CLOCK, databaseUrl: server.url });
  });
  afterAll(async () => {
    await store.close();
    await server.stop();
    await directory.remove();
  });

  /** Creates transactions until stopped, and records the response to each request. */
  async function writeUntil(stopped: () => boolean, fence: Fence, said: Answers): Promise<void> {
    while (!stopped()) {
      const intents = Array.from({ length: 20 }, () => anIntent(fence.lane));
      try {
        const given = nonces(await allocate(store, fence, intents));
        said.created.push(...intents.map(({ txId }, index) => ({ txId, nonce: given[index] as number })));
      } catch (error) {
        const list = error instanceof OutcomeUnknown ? said.unknown : said.denied;
        if (list === said.denied) expect(error).toBeInstanceOf(StoreUnavailable);
        list.push(...intents.map(({ txId }) => txId));
        await reachable();
      }
    }
  }

  it("keeps every acknowledged commit, even if synchronous_commit was off", async () => {
    const configure = async (...words: readonly string[]) => {
      const client = await connectClient(server.url);
      for (const word of ["SET synchronous_commit TO on", ...words]) await client.query(word);
      await client.end();
      // Database settings apply only to new sessions, so restart the server.
      await server.restart("immediate");
      await reachable();
    };
    const database = new URL(server.url).pathname.slice(1);
    const fence = await holdLane(store);
    await configure(
      `ALTER DATABASE "${database}" SET synchronous_commit TO off`,
      "ALTER SYSTEM SET wal_writer_delay TO '10s'",
    );
    let last = -1;
    for (let writes = 0; writes < 10; writes++) {
      last = nonces(await allocate(store, fence, [anIntent(fence.lane)]))[0] as number;
    }
    await server.restart("immediate");
    await reachable();
    const snapshot = await store.loadLane(fence);
    await configure(`ALTER DATABASE "${database}" RESET synchronous_commit`, "ALTER SYSTEM RESET wal_writer_delay");
    expect(snapshot).toMatchObject({ cursor: last + 1 });
  });

  it("has all acknowledged transactions after a crash during batches", async () => {
    const fences = [await holdLane(store), await holdLane(store)];
    const answers = fences.map((): Answers => ({ created: [], denied: [], unknown: [] }));
    let stop = false;
    const writing = fences.map((fence, index) => writeUntil(() => stop, fence, answers[index] as Answers));
    for (let crash = 1; crash <= 3; crash++) {
      const before = answers.map(({ created }) => created.length);
      await waitUntil(
        () => answers.every(({ created }, index) => created.length > (before[index] ?? 0)),
        "both lanes have got something accepted",
      );
      await server.restart("immediate");
    }
    stop = true;
    await Promise.all(writing);
    await accepting();
    for (const [index, { created, denied }] of answers.entries()) {
      const fence = fences[index] as Fence;
      const stored = await store.loadAllocated(fence.lane, 0, 100_000);
      const byId = new Map(stored.map(({ txId, nonce }) => [txId, nonce]));
      expect(created.length).toBeGreaterThan(0);
      for (const { txId, nonce } of created) expect(byId.get(txId)).toBe(nonce);
      for (const txId of denied) expect(byId.has(txId)).toBe(false);
      expect(stored.map(({ nonce }) => nonce)).toEqual(stored.map((_, nonce) => nonce));
      expect((await store.loadLane(fence))?.cursor).toBe(stored.length);
    }
  });

  /** Resolves when the store accepts writes again. */
  async function accepting(): Promise<void> {
    await waitUntil(() => holdLane(store).then(() => true, refusesForNow), "the store writes again");
  }

  async function reachable(): Promise<void> {
    await waitUntil(() => store.ping().then(() => true, refusesForNow), "the store reaches the server again");
  }

  function refusesForNow(error: unknown): false {
    expect(error).toBeInstanceOf(StoreUnavailable);
    return false;
  }

  it("refuses all earlier instances if the server is on another timeline", async () => {
    const fence = await holdLane(store);
    await confirm(store, fence);
    await confirm(store, fence);
    const before = await store.feed(0, 1);
    const instance = anInstance();
    await store.registerInstance(instance);
    await recoverToAnotherTimeline();

    await expect(allocate(store, fence, [anIntent(fence.lane)])).rejects.toBeInstanceOf(HistoryChanged);
    await expect(store.renewInstance(instance.instanceId, 60_000)).rejects.toBeInstanceOf(HistoryChanged);
    await expect(store.acquireLane(fence.lane, instance.instanceId)).rejects.toBeInstanceOf(HistoryChanged);
    expect(await store.feed(0, 1)).toMatchObject({ epoch: before.epoch });

    const heir = anInstance();
    const epoch = before.epoch + 1;
    expect(await store.registerInstance(heir)).toEqual({ epoch, begun: true, mayHaveLost: true });
    const feed = await store.feed(0, 1);
    expect(feed).toMatchObject({ epoch, truncatedThrough: before.truncatedThrough });
    expect(feed.epochStartsAfter).toBeGreaterThan(before.lastSeq);
    expect(await commitOne(store, { kind: "align", fence, floor: 9 })).toEqual({ status: "fenced" });
    const taken = await store.acquireLane(fence.lane, heir.instanceId);
    if (taken.result === "notLeader") throw new Error("not taken");
    expect(await allocate(store, taken.fence, [anIntent(fence.lane)])).toEqual([{ result: "held" }]);
    await commitOne(store, { kind: "reconcile", fence: taken.fence, floor: 2 });
    await commitOne(store, { kind: "suspend", fence: taken.fence, suspended: false });
    expect(nonces(await allocate(store, taken.fence, [anIntent(fence.lane)]))).toEqual([2]);
    expect(await store.loadLane(taken.fence), "what was given out before is told apart").toMatchObject({
      epochFloor: 2,
    });

    const other = await openPostgresStore({ ...CLOCK, databaseUrl: server.url });
    await other.registerInstance(anInstance());
    expect(await other.feed(0, 1)).toMatchObject({ epoch });
    await other.close();
  });

  it("begins a new feed epoch if the feed has lost sequence numbers", async () => {
    const fence = await holdLane(store);
    await commitOne(store, { kind: "reconcile", fence, floor: 0 });
    await confirm(store, fence);
    const { epoch, lastSeq } = await store.feed(0, 1);
    const forger = await openPostgresStore({ ...CLOCK, databaseUrl: server.url });
    await lowerTheFeed(lastSeq - 1);
    await forger.registerInstance(anInstance());
    expect(await forger.feed(0, 1)).toMatchObject({ epoch, lastSeq: lastSeq - 1 });
    await store.registerInstance(anInstance());
    const after = await forger.feed(0, 1);
    expect(after).toMatchObject({ epoch: epoch + 1 });
    expect(after.epochStartsAfter).toBeGreaterThanOrEqual(lastSeq);
    await forger.close();
  });

  it("is recognized as restored by a node that has seen later data", async () => {
    const unaware = await openPostgresStore({ ...CLOCK, databaseUrl: server.url });
    const stale = await holdLane(unaware);
    const { epoch } = await store.feed(0, 1);
    await restoringSnapshot(async () => {
      const { instanceId } = await holdLane(store);
      for (let i = 0; i < 50; i++) await store.renewInstance(instanceId, 60_000);
    });
    await waitUntil(() => unaware.ping().then(() => true, refusesForNow), "the other store reaches the server again");

    const instance = anInstance();
    expect(await store.registerInstance(instance)).toEqual({ epoch: epoch + 1, begun: true, mayHaveLost: true });
    await expect(commitOne(unaware, { kind: "align", fence: stale, floor: 9 })).rejects.toBeInstanceOf(HistoryChanged);
    await expect(unaware.declareDead(instance.instanceId, 1, "stood-still")).rejects.toBeInstanceOf(HistoryChanged);
    expect(await unaware.registerInstance(anInstance())).toMatchObject({ epoch: epoch + 1, begun: false });
    await unaware.close();
  });

  /** Runs `lost`, then restores the data directory from a snapshot taken before it: the effects of `lost` are gone. */
  async function restoringSnapshot(lost: () => Promise<unknown>): Promise<void> {
    const data = await dataDirectory(server.home);
    const snapshot = `${data}.snapshot`;
    await server.stop();
    await promisify(execFile)("cp", ["-a", data, snapshot]);
    server = await start();
    await reachable();
    await lost();
    await server.stop();
    await rm(data, { recursive: true });
    await rename(snapshot, data);
    server = await start();
    await reachable();
  }

  async function lowerTheFeed(lastSeq: number): Promise<void> {
    const client = await connectClient(server.url);
    await client.query("DELETE FROM fencepost.completion WHERE seq > $1", [lastSeq]);
    await client.query("UPDATE fencepost.feed SET last_seq = $1, epoch_starts_after = least(epoch_starts_after, $1)", [
      lastSeq,
    ]);
    await client.end();
  }

  /** Recovery to the end of the WAL starts a new timeline, as a promotion does. */
  async function recoverToAnotherTimeline(): Promise<void> {
    const data = await dataDirectory(server.home);
    await server.stop();
    await writeFile(join(data, "recovery.signal"), "");
    server = await start({ restore_command: "false" });
    const client = await connectClient(server.url);
    await waitUntil(async () => {
      const { rows } = await client.query<{ over: boolean }>("SELECT NOT pg_is_in_recovery() AS over");
      return rows[0]?.over;
    }, "the recovery is over");
    await client.end();
    await reachable();
  }
});

async function dataDirectory(home: string): Promise<string> {
  const found = (await readdir(home, { recursive: true })).find((path) => path.endsWith(join("global", "pg_control")));
  if (found === undefined) throw new Error(`no cluster below ${home}`);
  return join(home, dirname(dirname(found)));
}
