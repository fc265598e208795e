import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Fence, Lane } from "../../../src/domain/lane.ts";
import { EVERY_OUTCOME } from "../../../src/domain/webhooks/subscriber.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anInstance,
  anIntent,
  apply,
  aReceipt,
  confirm,
  mine,
  step,
} from "../../support/lane-samples.ts";
import { anOldIntent, anOldTransaction } from "../../support/old-transactions.ts";
import { policiesOf } from "../../support/policies.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { connectClient, createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

/**
 * Database transactions lock the rows of several tables. Two of them can wait for each other for ever only if they lock
 * two tables in different orders, or rows of one table in different orders. The first is looked at here in the locks
 * that PostgreSQL holds, the second by running each two actions against each other.
 */
const CHAIN = 1;
const KEY = "shop";
const POOL = "payouts";
const POLICIES = [1, 2].map((value) =>
  policiesOf({ keys: { [KEY]: { maxValue: { perDay: `${value}${"0".repeat(20)}` } } }, signers: { "*": {} } }),
);
const FOR_A_WHILE = 60_000;
const MANY = 1_000;

/** After an epoch began, nothing is allocated until the node has compared each lane with the chain. */
const RECONCILED = `UPDATE fencepost.lane SET suspended = false, suspended_by = NULL, reconciled_epoch = f.epoch
  FROM fencepost.feed AS f WHERE suspended OR reconciled_epoch <> f.epoch`;

/** One of two nodes. */
interface Side {
  readonly store: PostgresStore;
  /** The node's own lanes, acquired again if they were lost. */
  fences(): Promise<readonly [Fence, Fence]>;
  readonly instanceId: () => string;
}

let subject: PostgresSubject;
/** Looks at what waits: an action may use the subject's client, and wait with it. */
let observer: Awaited<ReturnType<typeof connectClient>>;
let sides: readonly [Side, Side];
const closing: (() => Promise<unknown>)[] = [];

async function openSide(): Promise<Side> {
  const options = { databaseUrl: subject.url, clock: systemClock, leaseDurationMs: FOR_A_WHILE };
  const store = await openPostgresStore({ ...options, policyWords: createCodec() });
  closing.push(() => store.close());
  const lanes: readonly [Lane, Lane] = [aLane(CHAIN), aLane(CHAIN)];
  let instanceId = "";
  const acquire = async (lane: Lane): Promise<Fence> => {
    const acquired = await store.acquireLane(lane, instanceId);
    if (acquired.result === "notLeader") throw new Error("the lane has an owner");
    return acquired.fence;
  };
  const fences = async (): Promise<readonly [Fence, Fence]> => {
    const isAlive = (await store.instances()).some((each) => each.instanceId === instanceId && !each.dead);
    if (!isAlive) {
      const instance = anInstance();
      await store.registerInstance(instance);
      instanceId = instance.instanceId;
    }
    const held = [await acquire(lanes[0]), await acquire(lanes[1])] as const;
    await subject.client.query(RECONCILED);
    return held;
  };
  await fences();
  return { store, fences, instanceId: () => instanceId };
}

const subscribers = [1, 2].map((n) => ({
  ...{ subscriberId: randomUUID(), name: `receiver-${n}`, url: "https://receiver.example/", filter: EVERY_OUTCOME },
  ...{ secretId: "5f1d7a84", giveUpAfterMs: FOR_A_WHILE, createdBy: null, after: 0 },
}));

beforeAll(async () => {
  subject = await createPostgresSubject();
  observer = await connectClient(subject.url);
  closing.push(() => observer.end());
  sides = [await openSide(), await openSide()];
  const [{ store }] = sides;
  const change = { actor: ACTOR, reason: "r", nodeId: "n", expectedVersion: null };
  await store.changePolicy({ policies: POLICIES[0] as (typeof POLICIES)[number], ...change });
  for (const each of subscribers) await store.addSubscriber(each, ACTOR);
});
afterAll(async () => {
  for (const close of closing) await close();
  await subject.close();
});

/** The create of a key that a policy limits, for a pool: it locks lanes, the key's use, and the pool's choices. */
const createIn = (fence: Fence) => {
  const intent = {
    ...anIntent(fence.lane, { requestId: randomUUID(), owner: KEY, payload: { value: 1n } }),
    pool: POOL,
  };
  return { kind: "allocate", fence, floor: 0, items: [{ intent }] } as const;
};

/** Prepares one database transaction, and returns what runs it. */
type Action = (side: Side, other: Side) => Promise<() => Promise<unknown>>;

const OUTCOME = { state: "CONFIRMED", subState: null, settled: true } as const;
const ACTOR = "operator:me";

async function commit({ store }: Side, writes: Parameters<PostgresStore["commit"]>[0]): Promise<void> {
  for (const { status } of (await store.commit(writes)).outcomes)
    if (status !== "allocated" && status !== "applied") throw new Error(`a write ended as ${status}`);
}

/** Everything that a node writes, by what it is. */
const ACTIONS: Readonly<Record<string, Action>> = {
  "creates on two lanes, for a pool, by a limited key": async (side) => {
    const held = await side.fences();
    return () =>
      commit(
        side,
        held.map((fence) => createIn(fence)),
      );
  },
  "creates and an outcome in one commit": async (side) => {
    const [one, other] = await side.fences();
    const { intent, attempt } = await mine(side.store, one, {}, { ...anIntent(one.lane, { owner: KEY }) });
    const completion = { ...OUTCOME, txHash: attempt.txHash };
    const items = [step(intent.txId, AT.mined, "confirm", { completion })];
    return () => commit(side, [{ kind: "transition", fence: one, items }, createIn(other)]);
  },
  "a create from the intake": async (side) => {
    const { store } = side;
    const [fence] = await side.fences();
    const intent = { ...anIntent(fence.lane, { requestId: randomUUID(), owner: KEY }) };
    await subject.intake(intent);
    const rows = (await store.loadIntake([fence.lane], 1)).filter((row) => row.intent.txId === intent.txId);
    const items = rows.map(({ intakeId }) => ({ intent, intakeId }));
    return () => commit(side, [{ kind: "allocate", fence, floor: 0, items }]);
  },
  "a first signature and a receipt": async (side) => {
    const { store } = side;
    const [one, other] = await side.fences();
    const intents = [anIntent(one.lane, { owner: KEY }), anIntent(other.lane, { owner: KEY })] as const;
    const attempt = anAttempt();
    await allocate(store, one, [intents[0]]);
    await allocate(store, other, [intents[1]]);
    const sign = { attempt, claim: { ordinal: 1 } };
    await apply(store, one, [step(intents[0].txId, AT.allocated, "sign", sign)]);
    await apply(store, one, [step(intents[0].txId, AT.pending, "broadcast", { accepted: { ordinal: 1 } })]);
    const mined = step(intents[0].txId, AT.broadcast, "mine", { receipt: aReceipt(attempt.txHash) });
    const signed = step(intents[1].txId, AT.allocated, "sign", { ...sign, attempt: anAttempt() });
    return () =>
      commit(side, [
        { kind: "transition", fence: one, items: [mined] },
        { kind: "transition", fence: other, items: [signed] },
      ]);
  },
  "lanes that are released": async ({ store, fences }) => {
    const [one, other] = await fences();
    await store.releaseLane(other);
    return () => store.releaseLane(one);
  },
  "lanes that are acquired": async ({ store, fences, instanceId }) => {
    const held = await fences();
    for (const fence of held) await store.releaseLane(fence);
    const lanes = held.map(({ lane }) => lane);
    return () => store.claimLanes(lanes.reverse(), instanceId(), 10);
  },
  "an instance that retires": async ({ store, fences, instanceId }) => {
    await fences();
    return () => store.retireInstance(instanceId());
  },
  "the other instance, declared dead": async ({ store }, other) => {
    await other.fences();
    const found = (await store.instances()).find((each) => each.instanceId === other.instanceId());
    await subject.expire(other.instanceId());
    return () => store.declareDead(other.instanceId(), found?.counter ?? 0, "expired");
  },
  "lanes of the dead, taken over": async ({ store, fences, instanceId }, other) => {
    await fences();
    const held = await other.fences();
    await store.retireInstance(other.instanceId());
    const lanes = held.map(({ lane }) => lane);
    return async () => {
      const taken = await store.claimLanes(lanes, instanceId(), 10);
      for (const { fence } of taken) await store.releaseLane(fence);
    };
  },
  "a heartbeat": async ({ store, instanceId }) => {
    return () => store.renewInstance(instanceId(), FOR_A_WHILE);
  },
  "old transactions that are removed": async ({ store, fences }) => {
    const held = await fences();
    for (const { lane, ...fence } of held)
      await anOldTransaction(store, { ...fence, lane }, anOldIntent(lane, { requestId: randomUUID(), owner: KEY }));
    await store.shortenFeed(0, MANY);
    return () => store.removeOld(held, 0, MANY);
  },
  "a feed that is shortened": async ({ store, fences }) => {
    const [fence] = await fences();
    await confirm(store, fence);
    return () => store.shortenFeed(0, MANY);
  },
  "request ids that are forgotten": async ({ store }) => {
    return () => store.forgetRequestIds(0, MANY);
  },
  "new policies": async ({ store }) => {
    const { version } = await store.readPolicy();
    const policies = POLICIES[version % 2] as (typeof POLICIES)[number];
    return () => store.changePolicy({ policies, actor: ACTOR, reason: "r", nodeId: "n", expectedVersion: null });
  },
  "deliveries of two subscribers": async ({ store, fences, instanceId }, other) => {
    await fences();
    await store.retireInstance(other.instanceId());
    const ids = subscribers.map(({ subscriberId }) => subscriberId);
    const claimed = await store.claimSubscribers(ids, instanceId());
    const progress = { epoch: 1, position: 0, done: [], failingSince: null, lastAnswer: null, nextTryAt: null };
    const rows = claimed.map(({ term }) => ({ term, ...progress, deliveredAt: null, paused: null }));
    return () => store.writeDeliveries(rows.reverse(), instanceId());
  },
  "a subscriber that a person changes": async ({ store }) => {
    const [seen] = subscribers as [(typeof subscribers)[number]];
    await store.changeSubscriber({ seen, change: { action: "pause" }, actor: ACTOR, reason: null });
    return () => store.changeSubscriber({ seen, change: { action: "resume" }, actor: ACTOR, reason: null });
  },
  "a request that is withdrawn": async ({ store, fences }) => {
    const [{ lane }] = await fences();
    const leftId = randomUUID();
    const body = { lane, action: "create", body: "{}", owner: null, repeatable: true };
    await store.leaveRequests([{ leftId, ...body }], FOR_A_WHILE);
    return () => store.withdrawRequest(leftId, [anIntent(lane, { requestId: randomUUID() })]);
  },
  "an API key that is revoked": async ({ store }) => {
    const quotas = { createsPerSecond: null, readsPerSecond: null, queueShare: null };
    const terms = { name: randomUUID(), scopes: ["read"] as const, signers: null, chains: null, ...quotas };
    await store.addApiSecret(terms, "a".repeat(64), ACTOR);
    return () => store.revokeApiKey(terms.name, null, ACTOR);
  },
  "a kill that ends": async ({ store }) => {
    const kill = { signer: null, actor: ACTOR, reason: "r" };
    await store.keepKills([{ ...kill, killId: randomUUID() }]);
    return () => store.endKills(kill, []);
  },
  "a registration that begins an epoch": async ({ store }) => {
    await subject.changeHistory();
    return () => store.registerInstance(anInstance());
  },
};

/** The locks that a session holds at the moment at which it waits for a row of another table. */
interface Wait {
  readonly held: readonly string[];
  readonly query: string;
}

/** Runs an action while another session holds every row of a table. Null: the action did not have to wait. */
async function waitFor(table: string, tables: readonly string[], action: () => Promise<unknown>): Promise<Wait | null> {
  const blocker = await connectClient(subject.url);
  try {
    await blocker.query("BEGIN");
    await blocker.query(`SELECT FROM fencepost.${table} FOR UPDATE`);
    const { rows: own } = await blocker.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    const state = { isOver: false };
    const running = action()
      .catch(() => undefined)
      .finally(() => {
        state.isOver = true;
      });
    let wait: Wait | null = null;
    await waitUntil(
      async () => {
        wait = await waiting(own[0]?.pid ?? 0, table, tables);
        return state.isOver || wait !== null;
      },
      `the action ends, or waits for ${table}`,
      { everyMs: 2 },
    );
    await blocker.query("ROLLBACK");
    await running;
    return wait;
  } finally {
    await blocker.end();
  }
}

/** A row that is locked or changed, and not yet committed, carries its writer in `xmax`. */
async function waiting(blocker: number, table: string, tables: readonly string[]): Promise<Wait | null> {
  const { rows } = await observer.query<{ xid: string | null; query: string }>(
    "SELECT backend_xid::text AS xid, query FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid)) LIMIT 1",
    [blocker],
  );
  const [found] = rows;
  if (found === undefined) return null;
  if (found.xid === null) return { held: [], query: found.query };
  const looks = tables.map(
    (each) => `SELECT '${each}' AS held WHERE EXISTS (SELECT FROM fencepost.${each} WHERE xmax::text = '${found.xid}')`,
  );
  const { rows: held } = await observer.query<{ held: string }>(looks.join(" UNION ALL "));
  return { held: held.map((row) => row.held).filter((each) => each !== table), query: found.query };
}

/** Tables of which an action may lock a row of another. */
async function tablesWithRows(): Promise<readonly string[]> {
  const { rows } = await observer.query<{ table: string }>(
    "SELECT tablename AS table FROM pg_tables WHERE schemaname = 'fencepost' AND tablename <> 'migration' ORDER BY 1",
  );
  const looks = rows.map(({ table }) => `SELECT '${table}' AS table WHERE EXISTS (SELECT FROM fencepost.${table})`);
  const { rows: filled } = await observer.query<{ table: string }>(looks.join(" UNION ALL "));
  return filled.map(({ table }) => table);
}

/** A way from a table back to itself along "is held while waiting for"; null if there is none. */
function circle(edges: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] | null {
  const done = new Set<string>();
  const visit = (table: string, way: readonly string[]): readonly string[] | null => {
    if (way.includes(table)) return [...way.slice(way.indexOf(table)), table];
    if (done.has(table)) return null;
    for (const next of edges.get(table) ?? []) {
      const found = visit(next, [...way, table]);
      if (found !== null) return found;
    }
    done.add(table);
    return null;
  };
  for (const table of edges.keys()) {
    const found = visit(table, []);
    if (found !== null) return found;
  }
  return null;
}

describe("the row locks of database transactions", () => {
  it("are taken in one order of the tables, whatever a node does", async () => {
    const [side, other] = sides;
    for (const action of Object.values(ACTIONS)) await (await action(side, other))();
    const tables = await tablesWithRows();
    const edges = new Map<string, Set<string>>();
    const seen: string[] = [];
    for (const [name, action] of Object.entries(ACTIONS)) {
      for (const table of tables) {
        const wait = await waitFor(table, tables, await action(side, other));
        for (const held of wait?.held ?? []) {
          edges.set(held, (edges.get(held) ?? new Set()).add(table));
          seen.push(`${name}: ${held}, then ${table}`);
        }
      }
    }
    const around = circle(edges);
    const along = (line: string) => around?.some((held, at) => line.endsWith(`: ${held}, then ${around[at + 1]}`));
    expect(seen.filter(along), around?.join(", then ")).toEqual([]);
    // What the order is about.
    for (const [held, table] of [
      ["lane", "transaction"],
      ["transaction", "key_use"],
      ["key_use", "feed"],
      ["policy", "lane"],
      ["lane", "node_instance"],
      ["epoch_floor", "feed"],
    ] as const)
      expect([...(edges.get(held) ?? [])], `${held} is held while ${table} is waited for`).toContain(table);
  }, 300_000);

  it("never wait for each other for ever, whichever two actions meet", async () => {
    const { client } = subject;
    const { rows } = await client.query<{ name: string }>("SELECT current_database() AS name");
    // Shorter than the time for which a node waits for a lock: a deadlock is found before a node gives up.
    await client.query(`ALTER DATABASE ${rows[0]?.name} SET deadlock_timeout = '10ms'`);
    const pairs = Object.keys(ACTIONS).flatMap((one, index) =>
      Object.keys(ACTIONS)
        .slice(index)
        .map((other) => [one, other] as const),
    );
    // Connections from before do not have that setting.
    const [left, right] = [await openSide(), await openSide()];
    const deadlocked: string[] = [];
    const carriedOut = new Set<string>();
    for (const [one, other] of pairs) {
      const twice = async (name: string, side: Side, beside: Side) => {
        for (let times = 0; times < 2; times++)
          await run(name, side, beside).then(
            () => carriedOut.add(name),
            (error: unknown) => {
              if (isDeadlock(error)) deadlocked.push(`${one} beside ${other}: ${name}`);
            },
          );
      };
      await Promise.all([twice(one, left, right), twice(other, right, left)]);
    }
    expect(deadlocked).toEqual([]);
    expect([...carriedOut].sort()).toEqual(Object.keys(ACTIONS).sort());
  }, 300_000);
});

async function run(name: string, side: Side, other: Side): Promise<void> {
  const prepared = await ACTIONS[name]?.(side, other);
  await prepared?.();
}

/** True for PostgreSQL's error deadlock_detected, or an error that it caused. */
function isDeadlock(error: unknown): boolean {
  const { code, cause } = Object(error) as { readonly code?: unknown; readonly cause?: unknown };
  return code === "40P01" || (cause !== undefined && isDeadlock(cause));
}
