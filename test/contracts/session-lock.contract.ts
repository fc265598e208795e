import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LeaseStore } from "../../src/ports/lease-store.ts";
import type { LockSession, SessionLock } from "../../src/ports/session-lock.ts";
import { anInstance } from "../support/lane-samples.ts";

export interface SessionLockSubject {
  /** Connects one more process; resolves when it holds its lock. */
  connect(): Promise<SessionLock>;
  /** Makes the server end this session. */
  interrupt(lock: SessionLock): Promise<void>;
  /** Opens a store as another node would, to write the rows of instances. */
  store(): Promise<Pick<LeaseStore, "registerInstance" | "publishLock"> & { close(): Promise<void> }>;
  /** The lock keys that other sessions see as held. */
  keys(): Promise<readonly number[]>;
  /** Resolves when `fact` returns true. */
  until(fact: () => boolean | Promise<boolean>): Promise<void>;
  close(): Promise<void>;
}

/** The contract of every SessionLock: it is visible exactly as long as its session lasts. */
export function sessionLockContract(name: string, create: () => Promise<SessionLockSubject>): void {
  describe(`SessionLock contract: ${name}`, () => {
    let subject: SessionLockSubject;
    let open: { close(): Promise<void> }[];
    beforeEach(async () => {
      subject = await create();
      open = [];
    });
    afterEach(async () => {
      await Promise.all(open.map((each) => each.close()));
      await subject.close();
    });

    async function process(): Promise<{ readonly lock: SessionLock; readonly changes: (LockSession | null)[] }> {
      const lock = await subject.connect();
      open.push(lock);
      const changes: (LockSession | null)[] = [];
      lock.onChange((held) => changes.push(held));
      return { lock, changes };
    }

    it("is held by each process under a different key", async () => {
      const all = [await process(), await process(), await process()];
      const keys = all.map(({ lock }) => lock.held?.key);
      expect(new Set(keys).size).toBe(3);
      expect([...(await subject.keys())].sort()).toEqual([...keys].sort());
      for (const { lock, changes } of all) expect(changes).toEqual([lock.held]);
      expect(all[0]?.lock.held?.serverUpMs).toBeGreaterThan(0);
    });

    // protects [Processes that end, and those that only seem to] src/adapters/postgres/session/session-lock.ts, src/application/lane/other-instances.ts
    it("reports missing locks of other instances when the lock is acquired", async () => {
      const store = await subject.store();
      open.push(store);
      const [gone, held, silent] = [anInstance(), anInstance(), anInstance()];
      for (const instance of [gone, held, silent]) await store.registerInstance(instance);
      const [dying, living] = [await process(), await process()];
      expect(await store.publishLock(gone.instanceId, dying.lock.held)).toBe("told");
      expect(await store.publishLock(held.instanceId, living.lock.held)).toBe("told");
      expect((await process()).lock.held?.missed).toEqual([]);
      await dying.lock.close();
      await subject.until(async () => (await subject.keys()).length === 2);
      const { missed } = (await process()).lock.held as LockSession;
      expect(missed).toEqual([
        { instanceId: gone.instanceId, counter: expect.any(Number), answeredMs: expect.any(Number) },
      ]);
    });

    it("is lost with its session, and acquired again under another key", async () => {
      const { lock, changes } = await process();
      const first = lock.held as LockSession;
      await subject.interrupt(lock);
      await subject.until(() => changes.length === 3);
      expect(changes).toEqual([first, null, lock.held]);
      expect(lock.held?.key).not.toBe(first.key);
      expect(await subject.keys()).toEqual([lock.held?.key]);
    });

    // protects [Processes that end, and those that only seem to] src/adapters/postgres/session/session-lock.ts
    it("reports whether the process had an earlier lock", async () => {
      const lock = await subject.connect();
      open.push(lock);
      const first = lock.held as LockSession;
      expect(first.isFirst).toBe(true);
      await subject.interrupt(lock);
      await subject.until(() => lock.held !== null && lock.held !== first);
      expect(lock.held?.isFirst).toBe(false);
      const changes: (LockSession | null)[] = [];
      lock.onChange((held) => changes.push(held));
      expect(changes).toMatchObject([{ isFirst: false }]);
      expect((await process()).lock.held?.isFirst, "in another process").toBe(true);
    });

    it("is released and acquired again by startOver", async () => {
      const { lock, changes } = await process();
      const first = lock.held as LockSession;
      lock.startOver();
      expect(lock.held, "at once").toBeNull();
      await subject.until(() => changes.length === 3);
      expect(changes).toEqual([first, null, lock.held]);
      await subject.until(async () => !(await subject.keys()).includes(first.key));
      expect(await subject.keys()).toEqual([lock.held?.key]);
    });

    it("ends when it is closed, without a call to a listener", async () => {
      const { lock, changes } = await process();
      await lock.close();
      await subject.until(async () => (await subject.keys()).length === 0);
      expect(changes).toHaveLength(1);
    });
  });
}
