import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  EVERY_OUTCOME,
  MOST_SUBSCRIBERS,
  type OutcomeFilter,
  type SubscriberTerm,
} from "../../src/domain/webhooks/subscriber.ts";
import type { NewSubscriber, StoredProgress, SubscriberChange } from "../../src/ports/subscriber-store.ts";
import { anInstance, confirm, holdLane } from "../support/lane-samples.ts";
import type { Store, StoreSubject } from "./store-subject.ts";

const ACTOR = "operator:me";
const LEASE_MS = 30_000;

/** The contract of every SubscriberStore: who may deliver, and that an ended term stores nothing. */
export function subscriberStoreContract(name: string, create: () => Promise<StoreSubject>): void {
  describe(`SubscriberStore contract: ${name}`, () => {
    let subject: StoreSubject;
    let store: Store;
    beforeAll(async () => {
      subject = await create();
      store = await subject.connect();
    });
    afterAll(async () => {
      await store.close();
      await subject.close();
    });

    let names = 0;
    const aSubscriber = (wishes: Partial<NewSubscriber> = {}): NewSubscriber => ({
      ...{ subscriberId: randomUUID(), name: `receiver-${++names}`, url: "https://receiver.example/outcomes" },
      ...{ filter: EVERY_OUTCOME, secretId: "5f1d7a84", giveUpAfterMs: 60_000, createdBy: null, after: null },
      ...wishes,
    });
    const added = async (wishes: Partial<NewSubscriber> = {}) => {
      const subscriber = aSubscriber(wishes);
      expect(await store.addSubscriber(subscriber, ACTOR)).toBe("added");
      return subscriber.subscriberId;
    };
    const read = async (id: string) => (await store.subscribers()).find(({ subscriberId }) => subscriberId === id);
    const anOwner = async () => {
      const registration = anInstance({ leaseDurationMs: LEASE_MS });
      await store.registerInstance(registration);
      return registration.instanceId;
    };
    const claim = async (id: string, instanceId: string) => (await store.claimSubscribers([id], instanceId))[0];
    const seenNow = async (subscriberId: string) =>
      (await read(subscriberId)) ?? { subscriberId, filter: EVERY_OUTCOME };
    const change = async (subscriberId: string, asked: SubscriberChange, reason: string | null = null) =>
      store.changeSubscriber({ seen: await seenNow(subscriberId), change: asked, actor: ACTOR, reason });
    const progressOf = (term: SubscriberTerm, of: Partial<StoredProgress> = {}): StoredProgress => ({
      ...{ term, epoch: 1, position: 7, done: [9, 11], failingSince: null, lastAnswer: null },
      ...{ nextTryAt: null, deliveredAt: null, paused: null, ...of },
    });
    const write = async (term: SubscriberTerm | undefined, of: Partial<StoredProgress> = {}) => {
      if (term === undefined) throw new Error("no term was given");
      return (await store.writeDeliveries([progressOf(term, of)], term.instanceId)).has(term.subscriberId);
    };

    it("reads a subscriber as it was added, at the end of the feed", async () => {
      const filter = { signers: [`0x${"ab".repeat(20)}`], chains: [1, 10], keys: ["shop"], states: ["STUCK"] } as const;
      const subscriber = aSubscriber({ filter, createdBy: "shop" });
      expect(await store.addSubscriber(subscriber, ACTOR)).toBe("added");
      const { lastSeq, epoch } = await store.feed(0, 1);
      const { after: _, ...kept } = subscriber;
      expect(await read(subscriber.subscriberId)).toMatchObject({
        ...kept,
        ...{ generation: 1, rotatedUntil: null, paused: null, position: lastSeq, epoch, owner: null, behind: 0 },
        ...{ failingSince: null, lastAnswer: null, nextTryAt: null, behindSince: null, changedBy: ACTOR },
      });
    });

    it("counts how far a subscriber is behind, and since when", async () => {
      const id = await added();
      const before = await read(id);
      await confirm(store, await holdLane(store));
      const after = await read(id);
      expect(after?.behind).toBe((before?.behind ?? 0) + 1);
      expect(after?.behindSince).toBeInstanceOf(Date);
      expect((await read(await added({ after: 0 })))?.position).toBe(0);
    });

    it("refuses a second subscriber of the same name", async () => {
      const subscriber = aSubscriber();
      expect(await store.addSubscriber(subscriber, ACTOR)).toBe("added");
      expect(await store.addSubscriber({ ...subscriber, subscriberId: randomUUID() }, ACTOR)).toBe("taken");
    });

    it("lets one live instance deliver, and another one once that is dead", async () => {
      const [id, one, two] = [await added(), await anOwner(), await anOwner()];
      const first = await claim(id, one);
      expect(first).toMatchObject({ subscriber: { subscriberId: id }, done: [], term: { instanceId: one } });
      expect(await claim(id, one)).toEqual(first);
      expect(await claim(id, two)).toBeUndefined();
      expect((await read(id))?.owner).toMatchObject({ instanceId: one });
      await store.retireInstance(one);
      expect((await read(id))?.owner).toBeNull();
      const second = await claim(id, two);
      expect(second?.term.token).toBeGreaterThan(first?.term.token ?? 0);
      await expect(store.claimSubscribers([id], one)).rejects.toMatchObject({ name: "InstanceOver" });
    });

    // protects [Webhooks] src/adapters/postgres/statements/subscriber.ts, src/adapters/postgres/stores/subscribers.ts
    it("stores the progress of a term that is in force, and of no other", async () => {
      const [id, one, two] = [await added(), await anOwner(), await anOwner()];
      const first = await claim(id, one);
      const at = await subject.now();
      const seen = { lastAnswer: { status: 503, reason: null, at }, failingSince: at, nextTryAt: at, deliveredAt: at };
      expect(await write(first?.term, seen)).toBe(true);
      expect(await read(id)).toMatchObject({ position: 7, epoch: 1, ...seen });
      expect((await claim(id, one))?.done).toEqual([9, 11]);
      await store.retireInstance(one);
      const second = await claim(id, two);
      expect(second).toMatchObject({ subscriber: { position: 7, ...seen }, done: [9, 11] });
      expect(await write(first?.term, { position: 99 })).toBe(false);
      expect((await read(id))?.position).toBe(7);
      expect(await write(second?.term, { position: 8, done: [] })).toBe(true);
    });

    it("stores nothing for an instance whose heartbeat is past", async () => {
      const [id, one] = [await added(), await anOwner()];
      const first = await claim(id, one);
      await subject.expire(one);
      expect(await write(first?.term)).toBe(false);
    });

    it("writes the progress of many subscribers at once, without those that are over", async () => {
      const [kept, gone, one] = [await added(), await added(), await anOwner()];
      const held = await store.claimSubscribers([kept, gone], one);
      expect(held).toHaveLength(2);
      await store.removeSubscriber(await seenNow(gone), ACTOR);
      const written = await store.writeDeliveries(
        held.map(({ term }) => progressOf(term)),
        one,
      );
      expect([...written]).toEqual([kept]);
    });

    it.each<SubscriberChange>([
      { action: "change", url: "https://receiver.example/other" },
      { action: "resume" },
      { action: "replay", after: 0 },
      { action: "rotate", generation: 1, secretId: "00000000", overlapMs: 1_000 },
    ])("ends the term of the delivering node by the change $action", async (asked) => {
      const [id, one] = [await added(), await anOwner()];
      const first = await claim(id, one);
      expect(await change(id, asked)).toBe(true);
      expect(await write(first?.term, { position: 99 })).toBe(false);
      const second = await claim(id, one);
      expect(second?.term.token).toBeGreaterThan(first?.term.token ?? 0);
      expect(await write(second?.term)).toBe(true);
    });

    it("changes what is given, and leaves the rest", async () => {
      const id = await added();
      const filter = { ...EVERY_OUTCOME, states: ["CONFIRMED"] } as const;
      await change(id, { action: "change", filter });
      expect(await read(id)).toMatchObject({ filter, url: "https://receiver.example/outcomes", giveUpAfterMs: 60_000 });
      await change(id, { action: "change", url: "https://receiver.example/b", giveUpAfterMs: 5_000 });
      expect(await read(id)).toMatchObject({ filter, url: "https://receiver.example/b", giveUpAfterMs: 5_000 });
      expect(await change(randomUUID(), { action: "resume" })).toBe(false);
    });

    it("has nobody deliver for a paused subscriber until it is resumed", async () => {
      const [id, one] = [await added(), await anOwner()];
      const first = await claim(id, one);
      await write(first?.term, { failingSince: await subject.now(), nextTryAt: await subject.now() });
      await change(id, { action: "pause" }, "maintenance");
      expect(await read(id)).toMatchObject({ paused: { by: "OPERATOR", why: "maintenance" }, owner: null });
      await change(id, { action: "pause" }, "again");
      expect(await read(id)).toMatchObject({ paused: { why: "maintenance" } });
      expect(await write(first?.term)).toBe(false);
      expect(await claim(id, one)).toBeUndefined();
      await change(id, { action: "resume" });
      expect(await read(id)).toMatchObject({ paused: null, failingSince: null, nextTryAt: null, position: 7 });
      expect(await claim(id, one)).toBeDefined();
    });

    it("keeps why the delivering node paused a subscriber", async () => {
      const [id, one] = [await added(), await anOwner()];
      const first = await claim(id, one);
      expect(await write(first?.term, { paused: { by: "GONE", why: "HTTP 410" } })).toBe(true);
      expect(await read(id)).toMatchObject({ paused: { by: "GONE", why: "HTTP 410" }, owner: null });
      expect(await write(first?.term)).toBe(false);
      expect(await claim(id, one)).toBeUndefined();
    });

    it("replays after a position, without the outcomes that were delivered above it", async () => {
      const [id, one] = [await added(), await anOwner()];
      await write((await claim(id, one))?.term);
      expect(await change(id, { action: "replay", after: 3 })).toBe(true);
      expect(await claim(id, one)).toMatchObject({ subscriber: { position: 3 }, done: [] });
    });

    it("rotates the secret of a generation once", async () => {
      const id = await added();
      const rotate = { action: "rotate", generation: 1, secretId: "0badcafe", overlapMs: 3_600_000 } as const;
      expect(await change(id, rotate)).toBe(true);
      expect(await change(id, rotate)).toBe(false);
      const { generation, secretId, rotatedUntil } = (await read(id)) ?? {};
      expect({ generation, secretId }).toEqual({ generation: 2, secretId: "0badcafe" });
      expect(rotatedUntil?.getTime()).toBeGreaterThan((await subject.now()).getTime() + 3_000_000);
    });

    const widened: readonly Partial<OutcomeFilter>[] = [
      { signers: [`0x${"ab".repeat(20)}`] },
      { chains: [10] },
      { keys: ["shop"] },
      { states: ["CONFIRMED"] },
    ];
    // protects [Webhooks] src/adapters/postgres/statements/subscriber.ts
    it.each(widened)(
      "neither changes nor removes a subscriber whose filter has changed since it was read: %j",
      async (wider) => {
        const filter = { ...EVERY_OUTCOME, signers: [`0x${"cd".repeat(20)}`] } as const;
        const id = await added({ filter });
        const seen = await seenNow(id);
        await change(id, { action: "change", filter: { ...filter, ...wider } });
        const changed = await read(id);
        const asked: readonly SubscriberChange[] = [
          { action: "change", url: "https://attacker.example" },
          ...(["pause", "resume"] as const).map((action) => ({ action })),
          { action: "replay", after: 0 },
          { action: "rotate", generation: 1, secretId: "00000000", overlapMs: 1_000 },
        ];
        for (const each of asked)
          expect(await store.changeSubscriber({ seen, change: each, actor: ACTOR, reason: null }), each.action).toBe(
            false,
          );
        expect(await store.removeSubscriber(seen, ACTOR)).toBe(false);
        expect({ ...(await read(id)), readAt: null }).toEqual({ ...changed, readAt: null });
      },
    );

    it("removes a subscriber", async () => {
      const id = await added();
      const seen = await seenNow(id);
      expect(await store.removeSubscriber(seen, ACTOR)).toBe(true);
      expect(await store.removeSubscriber(seen, ACTOR)).toBe(false);
      expect(await read(id)).toBeUndefined();
    });

    it("adds no subscriber beyond the limit", async () => {
      const known = (await store.subscribers()).length;
      for (let count = known; count < MOST_SUBSCRIBERS; count++) await added();
      expect(await store.addSubscriber(aSubscriber(), ACTOR)).toBe("full");
    });
  });
}
