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

/** The contract of every WakeUps. A hint may be lost, but it need not be: no test expects a loss. */
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

    async function node(): Promise<{ readonly wakeUps: WakeUps; readonly heard: WakeUp[] }> {
      const wakeUps = await subject.connect();
      open.push(wakeUps);
      const heard: WakeUp[] = [];
      wakeUps.listen((wakeUp) => heard.push(wakeUp));
      return { wakeUps, heard };
    }

    it("delivers a hint of one node to all other nodes", async () => {
      const [teller, ...others] = [await node(), await node(), await node()];
      teller?.wakeUps.notify("completions");
      await subject.until(() => others.every(({ heard }) => heard.includes("completions")));
      for (const { heard } of others) expect(new Set(heard)).toEqual(new Set(["completions"]));
    });

    // protects [Many lanes] src/adapters/postgres/stores/wake-ups.ts
    it("reports that it is listening, until it is closed", async () => {
      const { wakeUps } = await node();
      expect(wakeUps.isListening).toBe(true);
      await wakeUps.close();
      expect(wakeUps.isListening).toBe(false);
    });

    it("does not deliver a hint to the node that sent it", async () => {
      const [teller, other] = [await node(), await node()];
      teller.wakeUps.notify("lanes");
      other.wakeUps.notify("intake");
      await subject.until(() => other.heard.length > 0 && teller.heard.length > 0);
      expect(new Set(teller.heard)).toEqual(new Set(["intake"]));
    });

    it("delivers every kind of hint at least once if a thousand are sent at once", async () => {
      const [teller, other] = [await node(), await node()];
      for (let i = 0; i < 1_000; i++) teller.wakeUps.notify(WAKE_UPS[i % WAKE_UPS.length] as WakeUp);
      await subject.until(() => new Set(other.heard).size === WAKE_UPS.length);
    });

    it("emits every kind of hint once after a lost connection, then receives new hints again", async () => {
      const [teller, other] = [await node(), await node()];
      await subject.interrupt(other.wakeUps);
      await subject.until(() => new Set(other.heard).size === WAKE_UPS.length);
      other.heard.length = 0;
      teller.wakeUps.notify("lanes");
      await subject.until(() => other.heard.includes("lanes"));
    });

    it("sends nothing after it is closed, and does not throw", async () => {
      const [teller, other] = [await node(), await node()];
      await teller.wakeUps.close();
      teller.wakeUps.notify("lanes");
      const third = await node();
      third.wakeUps.notify("intake");
      await subject.until(() => other.heard.includes("intake"));
      expect(teller.heard).toEqual([]);
    });
  });
}
