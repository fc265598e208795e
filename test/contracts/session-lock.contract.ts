import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LockSession, SessionLock } from "../../src/ports/session-lock.ts";

export interface SessionLockSubject {
  /** One more process; resolves when it holds its lock. */
  connect(): Promise<SessionLock>;
  /** The server ends this session. */
  interrupt(lock: SessionLock): Promise<void>;
  /** Keys that are held, as others see them. */
  keys(): Promise<readonly number[]>;
  /** Resolves when the fact holds. */
  until(fact: () => boolean | Promise<boolean>): Promise<void>;
  close(): Promise<void>;
}

/** What every SessionLock promises: it is seen while its session lasts, and not for a moment longer. */
export function sessionLockContract(name: string, create: () => Promise<SessionLockSubject>): void {
  describe(`SessionLock contract: ${name}`, () => {
    let subject: SessionLockSubject;
    let open: SessionLock[];
    beforeEach(async () => {
      subject = await create();
      open = [];
    });
    afterEach(async () => {
      await Promise.all(open.map((each) => each.close()));
      await subject.close();
    });

    async function process(): Promise<{ readonly lock: SessionLock; readonly heard: (LockSession | null)[] }> {
      const lock = await subject.connect();
      open.push(lock);
      const heard: (LockSession | null)[] = [];
      lock.hear((held) => heard.push(held));
      return { lock, heard };
    }

    it("is held by each, under a key of its own, and whoever listens is told at once", async () => {
      const all = [await process(), await process(), await process()];
      const keys = all.map(({ lock }) => lock.held?.key);
      expect(new Set(keys).size).toBe(3);
      expect([...(await subject.keys())].sort()).toEqual([...keys].sort());
      for (const { lock, heard } of all) expect(heard).toEqual([lock.held]);
      expect(all[0]?.lock.held?.serverUpMs).toBeGreaterThan(0);
    });

    it("is lost with its session, and held again under another key", async () => {
      const { lock, heard } = await process();
      const first = lock.held as LockSession;
      await subject.interrupt(lock);
      await subject.until(() => heard.length === 3);
      expect(heard).toEqual([first, null, lock.held]);
      expect(lock.held?.key).not.toBe(first.key);
      expect(await subject.keys()).toEqual([lock.held?.key]);
    });

    it("is given up and held anew where it is not seen", async () => {
      const { lock, heard } = await process();
      const first = lock.held as LockSession;
      lock.startOver();
      expect(lock.held, "at once").toBeNull();
      await subject.until(() => heard.length === 3);
      expect(heard).toEqual([first, null, lock.held]);
      await subject.until(async () => !(await subject.keys()).includes(first.key));
      expect(await subject.keys()).toEqual([lock.held?.key]);
    });

    it("ends with whoever held it, and nobody is told of that", async () => {
      const { lock, heard } = await process();
      await lock.close();
      await subject.until(async () => (await subject.keys()).length === 0);
      expect(heard).toHaveLength(1);
    });
  });
}
