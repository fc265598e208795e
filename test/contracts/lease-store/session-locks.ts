import { randomUUID } from "node:crypto";
import { afterEach, expect, it } from "vitest";
import type { InstanceRecord } from "../../../src/ports/lease-store.ts";
import type { LockSession, SessionLock } from "../../../src/ports/session-lock.ts";
import { anInstance } from "../../support/lane-samples.ts";
import type { LeaseStoreContext } from "./serving.ts";

/**
 * An instance counts as dead when its session lock ends. Events that only look similar, while the lock is still held,
 * do not count.
 */
export function sessionLocksContract(context: LeaseStoreContext): void {
  const open: SessionLock[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((lock) => lock.close()));
  });

  const session = async (): Promise<SessionLock> => {
    const lock = await context.subject.lock();
    open.push(lock);
    return lock;
  };
  const held = (lock: SessionLock) => lock.held as LockSession;
  const register = async (): Promise<string> => {
    const instance = anInstance();
    await context.store.registerInstance(instance);
    return instance.instanceId;
  };
  const find = async (instanceId: string): Promise<InstanceRecord> => {
    const found = (await context.store.instances()).find((row) => row.instanceId === instanceId);
    return found as InstanceRecord;
  };
  const gone = async (instanceId: string): Promise<InstanceRecord> => {
    for (;;) {
      const found = await find(instanceId);
      if (found.lock === "gone") return found;
    }
  };

  it("a session lock is `none` before it is published, even if it is held", async () => {
    await session();
    expect((await find(await register())).lock).toBe("none");
  });

  it("a published session lock is `held` for every node, and publishing it renews the instance", async () => {
    const [id, lock] = [await register(), await session()];
    const before = await find(id);
    expect(await context.store.publishLock(id, held(lock))).toBe("told");
    const other = await context.subject.connect();
    const seen = (await other.instances()).find(({ instanceId }) => instanceId === id);
    expect(seen).toEqual({ ...before, lock: "held", counter: before.counter + 1, readAt: expect.any(Date) });
    await other.close();
  });

  it("a session lock is gone when its session ends, and locks of other sessions are not affected", async () => {
    const [one, two] = [await register(), await register()];
    const [ending, lasting] = [await session(), await session()];
    await context.store.publishLock(one, held(ending));
    await context.store.publishLock(two, held(lasting));
    await ending.close();
    expect((await gone(one)).dead).toBe(false);
    expect((await find(two)).lock).toBe("held");
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/statements/node-instance.ts
  it("a session lock that cannot be seen in the database, or is another session's, is not published", async () => {
    const [id, lock] = [await register(), await session()];
    await context.store.publishLock(id, held(lock));
    const stranger = { key: held(lock).key, session: held(lock).session + 1 };
    expect(await context.store.publishLock(id, stranger)).toBe("unseen");
    expect((await find(id)).lock).toBe("none");
    expect(await context.store.publishLock(id, { ...held(lock), key: held(lock).key ^ 1 })).toBe("unseen");
  });

  it("a session lock is `none` again once its withdrawal is published", async () => {
    const [id, lock] = [await register(), await session()];
    await context.store.publishLock(id, held(lock));
    expect(await context.store.publishLock(id, null)).toBe("told");
    await lock.close();
    expect((await find(id)).lock).toBe("none");
  });

  it("a session lock cannot be published by an expired, dead or unknown instance", async () => {
    const [expired, dead, lock] = [await register(), await register(), await session()];
    await context.subject.expire(expired);
    await context.store.retireInstance(dead);
    for (const id of [expired, dead, randomUUID()]) {
      expect(await context.store.publishLock(id, held(lock))).toBe("over");
    }
    expect((await find(dead)).counter).toBe(1);
  });

  it("a published session lock stays through renewals", async () => {
    const [id, lock] = [await register(), await session()];
    await context.store.publishLock(id, held(lock));
    await context.store.renewInstance(id, 60_000);
    expect((await find(id)).lock).toBe("held");
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/statements/node-instance.ts, src/application/lane/other-instances.ts
  it("an instance that holds its session lock cannot be declared dead for a lost lock", async () => {
    const [silent, living, lock] = [await register(), await register(), await session()];
    await context.store.publishLock(living, held(lock));
    expect(await context.store.declareDead(silent, 1, "lock-gone")).toBe(false);
    expect(await context.store.declareDead(living, 2, "lock-gone")).toBe(false);
    expect((await find(silent)).dead || (await find(living)).dead).toBe(false);
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/statements/node-instance.ts
  it("an instance without its session lock is declared dead only if its heartbeat counter is unchanged", async () => {
    const [id, lock] = [await register(), await session()];
    await context.store.publishLock(id, held(lock));
    await lock.close();
    const { counter } = await gone(id);
    await context.store.renewInstance(id, 60_000);
    expect(await context.store.declareDead(id, counter, "lock-gone")).toBe(false);
    expect(await context.store.declareDead(id, counter + 1, "lock-gone")).toBe(true);
    expect(await context.store.renewInstance(id, 60_000)).toBe(false);
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/statements/node-instance.ts
  it("an instance that published a new session lock meanwhile is not declared dead for the old one", async () => {
    const [id, first] = [await register(), await session()];
    await context.store.publishLock(id, held(first));
    await first.close();
    const { counter } = await gone(id);
    expect(await context.store.publishLock(id, held(await session()))).toBe("told");
    expect(await context.store.declareDead(id, counter, "lock-gone")).toBe(false);
    expect(await find(id)).toMatchObject({ dead: false, lock: "held" });
  });
}
