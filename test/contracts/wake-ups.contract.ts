import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WAKE_UPS, type WakeUp, type WakeUps } from "../../src/ports/wake-ups.ts";

export interface WakeUpsSubject {
  /** Connects one more node; resolves when it listens. */
  connect(): Promise<WakeUps>;
  /** Resolves when `fact` returns true. */
  until(fact: () => boolean): Promise<void>;
  /** Breaks this node's connection and lets it reconnect. */
  interrupt(wakeUps: WakeUps): Promise<void>;
  close(): Promise<void>;
}

/** The contract of every WakeUps. Hints are allowed to get lost, but no test requires that one is lost. */
export function wakeUpsContract(name: string, create: () => Promise<WakeUpsSubject>): void {
  describe(`WakeUps contract: ${name}`, () => {
    let subject: WakeUpsSubject;
    let open: WakeUps[];
    beforeEach(async () => {
      subject = await create();
      open = [];
    });
    afterEach(async () => {
      await Promise.all(open.map((each) => each.close()));
      await subject.close();
    });

    async function node(): Promise<{ readonly wakeUps: WakeUps; readonly received: WakeUp[] }> {
      const wakeUps = await subject.connect();
      open.push(wakeUps);
      const received: WakeUp[] = [];
      wakeUps.listen((wakeUp) => received.push(wakeUp));
      return { wakeUps, received };
    }

    it("delivers a hint of one node to all other nodes", async () => {
      const [sender, ...others] = [await node(), await node(), await node()];
      sender?.wakeUps.notify("completions");
      await subject.until(() => others.every(({ received }) => received.includes("completions")));
      for (const { received } of others) expect(new Set(received)).toEqual(new Set(["completions"]));
    });

    // protects [Many lanes] src/adapters/postgres/stores/wake-ups.ts
    it("reports that it is listening, until it is closed", async () => {
      const { wakeUps } = await node();
      expect(wakeUps.isListening).toBe(true);
      await wakeUps.close();
      expect(wakeUps.isListening).toBe(false);
    });

    it("does not deliver a hint to the node that sent it", async () => {
      const [sender, other] = [await node(), await node()];
      sender.wakeUps.notify("lanes");
      other.wakeUps.notify("intake");
      await subject.until(() => other.received.length > 0 && sender.received.length > 0);
      expect(new Set(sender.received)).toEqual(new Set(["intake"]));
    });

    it("delivers every kind of hint at least once, even if a thousand hints are sent at once", async () => {
      const [sender, other] = [await node(), await node()];
      for (let i = 0; i < 1_000; i++) sender.wakeUps.notify(WAKE_UPS[i % WAKE_UPS.length] as WakeUp);
      await subject.until(() => new Set(other.received).size === WAKE_UPS.length);
    });

    it("emits every kind of hint once after a lost connection, then receives new hints again", async () => {
      const [sender, other] = [await node(), await node()];
      await subject.interrupt(other.wakeUps);
      await subject.until(() => new Set(other.received).size === WAKE_UPS.length);
      other.received.length = 0;
      sender.wakeUps.notify("lanes");
      await subject.until(() => other.received.includes("lanes"));
    });

    it("sends nothing after it is closed, and does not throw", async () => {
      const [sender, other] = [await node(), await node()];
      await sender.wakeUps.close();
      sender.wakeUps.notify("lanes");
      const third = await node();
      third.wakeUps.notify("intake");
      await subject.until(() => other.received.includes("intake"));
      expect(sender.received).toEqual([]);
    });
  });
}
