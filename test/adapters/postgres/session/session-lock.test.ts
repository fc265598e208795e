import { describe, expect, it } from "vitest";
import { SESSION_LOCKS } from "../../../../src/adapters/postgres/rows/session-locks.ts";
import { migrate } from "../../../../src/adapters/postgres/schema/migrate.ts";
import { PostgresSessionLock } from "../../../../src/adapters/postgres/session/session-lock.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { createEntropy } from "../../../../src/adapters/system/entropy.ts";
import type { HeldLock, LockSession } from "../../../../src/ports/session-lock.ts";
import { sessionLockContract } from "../../../contracts/session-lock.contract.ts";
import { anInstance } from "../../../support/lane-samples.ts";
import { startOwnPostgres } from "../../../support/own-postgres.ts";
import { recordTelemetry } from "../../../support/recorded-telemetry.ts";
import { TcpProxy } from "../../../support/tcp-proxy.ts";
import { waitUntil } from "../../../support/wait-until.ts";
import { connectClient, createPostgresSubject, openSessionLock } from "../postgres-subject.ts";

sessionLockContract("PostgreSQL", async () => {
  const { url, client, connect, close } = await createPostgresSubject();
  return {
    connect: () => openSessionLock(url),
    store: connect,
    interrupt: async (lock) => {
      await client.query("SELECT pg_terminate_backend($1)", [lock.held?.session]);
    },
    keys: async () => (await client.query<HeldLock>(SESSION_LOCKS)).rows.map(({ key }) => key),
    until: async (fact) => void (await waitUntil(fact, "the fact holds")),
    close,
  };
});

describe("a node's PostgreSQL session lock", () => {
  // protects [Processes that end, and those that only seem to] src/adapters/postgres/session/session-lock.ts
  it("is not lost on a server with an idle session timeout", async () => {
    const { url, client, close } = await createPostgresSubject();
    await client.query(`ALTER DATABASE "${new URL(url).pathname.slice(1)}" SET idle_session_timeout TO '50ms'`);
    const lock = await openSessionLock(url);
    const first = lock.held;
    const idleMs = async () => {
      const sql = "SELECT extract(epoch FROM clock_timestamp() - state_change) * 1000 AS ms FROM pg_stat_activity";
      const { rows } = await client.query<{ ms: string }>(`${sql} WHERE pid = $1`, [first?.session]);
      return Number(rows[0]?.ms);
    };
    await waitUntil(async () => (await idleMs()) > 200, "it was idle for longer than a session may be");
    expect(lock.held).toBe(first);
    await lock.close();
    await close();
  });

  // protects [Short of time] src/adapters/postgres/session/direct-session.ts
  it("is taken in another session if the server does not answer", async () => {
    const { url, close } = await createPostgresSubject();
    const proxy = await TcpProxy.start(Number(new URL(url).port));
    const silent = proxy.holdAt("pg_try_advisory_lock");
    const opening = openSessionLock(proxy.through(url));
    await silent;
    const lock = await opening;
    expect(lock.held).not.toBeNull();
    await lock.close();
    await proxy.close();
    await close();
  });

  it("is visible to a role that can see nothing else of the session", async () => {
    const { url, client, close } = await createPostgresSubject();
    const name = `plain_${new URL(url).pathname.slice(1)}`;
    await client.query(`CREATE ROLE "${name}" LOGIN PASSWORD 'plain'; GRANT USAGE ON SCHEMA fencepost TO "${name}"`);
    const lock = await openSessionLock(url);
    const plain = new URL(url);
    Object.assign(plain, { username: name, password: "plain" });
    const onlooker = await connectClient(plain.href);
    const { key, session } = lock.held as LockSession;
    expect((await onlooker.query(SESSION_LOCKS)).rows).toEqual([{ key, session }]);
    await onlooker.end();
    await lock.close();
    await client.query(`DROP OWNED BY "${name}"; DROP ROLE "${name}"`);
    await close();
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/statements/node-instance.ts
  it("is not mistaken for a lock with the same key in another database", async () => {
    const [one, two] = [await createPostgresSubject(), await createPostgresSubject()];
    const lock = await openSessionLock(one.url);
    expect((await two.client.query(SESSION_LOCKS)).rows).toEqual([]);
    const store = await two.connect();
    const instance = anInstance();
    await store.registerInstance(instance);
    // The direct address given for the session lock leads to another server. If the node published that lock, every
    // other node would consider this instance dead.
    expect(await store.publishLock(instance.instanceId, lock.held)).toBe("unseen");
    await Promise.all([lock.close(), store.close()]);
    await Promise.all([one.close(), two.close()]);
  });

  it("is not reported as held by a session that only waits for it", async () => {
    const { url, client, close, whenWaiting } = await createPostgresSubject();
    const key = "'fencepost.node_instance'::regclass::oid::integer, 7";
    await client.query(`SELECT pg_advisory_lock_shared(${key})`);
    const waiting = await connectClient(url);
    const got = waiting.query(`SELECT pg_advisory_lock(${key})`);
    await whenWaiting(1);
    expect((await client.query(SESSION_LOCKS)).rows).toEqual([]);
    await client.query(`SELECT pg_advisory_unlock_shared(${key})`);
    await got;
    expect((await client.query(SESSION_LOCKS)).rows).toMatchObject([{ key: 7 }]);
    await waiting.end();
    await close();
  });

  it("is never waited for: if the key is taken, another key is drawn", async () => {
    const { url, client, close } = await createPostgresSubject();
    await client.query("SELECT pg_advisory_lock('fencepost.node_instance'::regclass::oid::integer, -2147483648)");
    const draws = [0, 0, 0, 0.75];
    const entropy = { ...createEntropy(systemClock), random: () => draws.shift() ?? 0.5 };
    const lock = new PostgresSessionLock({ directUrl: url, clock: systemClock, entropy, telemetry: recordTelemetry() });
    await waitUntil(() => lock.held !== null, "it holds another one");
    expect(lock.held?.key).not.toBe(-(2 ** 31));
    await lock.close();
    await close();
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/statements/node-instance.ts
  it("is not reported as missing on a standby, which does not show the primary's locks", async () => {
    const server = await startOwnPostgres();
    await migrate({ databaseUrl: server.url });
    const client = await connectClient(server.url);
    await client.query(
      `INSERT INTO fencepost.node_instance (instance_id, node_id, url, version, mode, started_at, heartbeat_at, expires_at,
         session_lock)
       SELECT gen_random_uuid(), 'a', 'http://a', '1', 'basic', now(), now(), now(), 7`,
    );
    const looked = async (): Promise<LockSession> => {
      const lock = await openSessionLock(server.url);
      const { held } = lock;
      await lock.close();
      return held as LockSession;
    };
    expect((await looked()).missed, "on the server that its process would have locked").toHaveLength(1);
    await client.end();
    await server.standBy();
    expect((await looked()).missed).toEqual([]);
    await server.remove();
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/statements/node-instance.ts
  it("is reported with the server's uptime", async () => {
    const server = await startOwnPostgres();
    await migrate({ databaseUrl: server.url });
    const client = await connectClient(server.url);
    await client.query("SELECT pg_stat_reset_shared('wal')");
    const lock = await openSessionLock(server.url);
    const before = lock.held as LockSession;
    const changes: (LockSession | null)[] = [];
    lock.onChange((held) => changes.push(held));
    const beganMs = systemClock.monotonicMs();
    await waitUntil(() => systemClock.monotonicMs() - beganMs > 1_000, "the server has been up for a second");
    const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    process.kill(rows[0]?.pid as number, "SIGKILL");
    await waitUntil(() => changes.length >= 3, "it holds a lock again");
    const started = await connectClient(server.url);
    const upMs = "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000 AS ms";
    const { rows: up } = await started.query<{ ms: string }>(upMs);
    expect(lock.held?.serverUpMs, "less than the server's own word").toBeLessThan(Number(up[0]?.ms) - 1_000);
    expect(lock.held?.key).not.toBe(before.key);
    await Promise.all([client.end(), started.end(), lock.close()]);
    await server.remove();
  });
});
