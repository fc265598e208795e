/** Deliveries of outcomes by one or two nodes, in memory: receivers that fail, and changes of the feed. */
import { randomUUID } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { Deliveries } from "../../../src/application/loops/deliveries.ts";
import type { Address } from "../../../src/domain/lane.ts";
import type { ReceiverAnswer } from "../../../src/domain/webhooks/receiver-answers.ts";
import { EVERY_OUTCOME } from "../../../src/domain/webhooks/subscriber.ts";
import type { NewSubscriber } from "../../../src/ports/subscriber-store.ts";
import type { WebhookMessage, WebhookSender } from "../../../src/ports/webhook-sender.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { MemoryDatabase } from "../../doubles/memory-store.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { anInstance } from "../../support/lane-samples.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";

const HOUR_MS = 3_600_000;
const signer = (n: number): Address => `0x${n.toString(16).padStart(40, "0")}`;
const OK: ReceiverAnswer = { kind: "status", status: 204, retryAfterMs: null };
const status = (code: number, retryAfterMs: number | null = null): ReceiverAnswer => {
  return { kind: "status", status: code, retryAfterMs };
};

async function aCluster() {
  const clock = createManualClock();
  const database = new MemoryDatabase(clock);
  const sent: WebhookMessage[] = [];
  const state = { answer: (_: WebhookMessage): ReceiverAnswer | Promise<ReceiverAnswer> => OK };
  const sender: WebhookSender = {
    secretOf: () => ({ secret: "whsec_", secretId: "known" }),
    canSign: (_, secretId) => secretId === "known",
    send: async (message) => {
      sent.push(message);
      return state.answer(message);
    },
  };
  const telemetry = recordTelemetry();
  const aNode = async (nodeId = "node", mayAct = () => true, isListening = false) => {
    const registration = anInstance({ nodeId, leaseDurationMs: 1_000 * HOUR_MS });
    const store = database.connect();
    await store.registerInstance(registration);
    const { instanceId } = registration;
    const member = { ...registration, chains: new Set<number>(), signers: new Set<Address>(), keysAway: null };
    const deliveries = new Deliveries({
      ...{ clock, telemetry, store, sender, nodeId, entropy: createSeededEntropy(1) },
      wakeUps: { isListening },
      instanceId: () => instanceId,
      mayAct,
      members: () => [{ ...member, draining: false }],
      onFailed: () => undefined,
    });
    /** Runs the beats of a node for this time. */
    const run = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 1_000) {
        deliveries.look();
        await clock.advance(1_000);
      }
    };
    return { deliveries, run, store, instanceId };
  };
  let last = 0;
  const outcomes = (...of: readonly number[]) => {
    for (const n of of) {
      database.state.feed.lastSeq = ++last;
      database.state.completions.push({
        ...{ seq: last, epoch: database.state.feed.epoch, txId: randomUUID(), lane: { chainId: 1, signer: signer(n) } },
        ...{ requestId: null, nonce: last, state: "CONFIRMED", subState: null, settled: true, txHash: null },
        at: clock.now(),
      });
    }
  };
  const subscribe = async (wishes: Partial<NewSubscriber> = {}) => {
    const subscriber = {
      ...{ subscriberId: randomUUID(), name: "books", url: "https://books.example/", filter: EVERY_OUTCOME },
      ...{ secretId: "known", giveUpAfterMs: 72 * HOUR_MS, createdBy: null, after: 0, ...wishes },
    };
    await database.connect().addSubscriber(subscriber, "operator:me");
    return subscriber.subscriberId;
  };
  const read = async (id: string) =>
    (await database.connect().subscribers()).find(({ subscriberId }) => subscriberId === id);
  const seqs = () => sent.flatMap(({ event }) => (event.kind === "completion" ? event.completion.seq : []));
  return { clock, database, sent, seqs, state, telemetry, aNode, outcomes, subscribe, read };
}

describe("deliveries of outcomes", () => {
  it("are made once, in order, and their position is stored", async () => {
    const { aNode, outcomes, subscribe, read, seqs, sent } = await aCluster();
    const id = await subscribe();
    const { run } = await aNode();
    outcomes(1, 1, 2, 1);
    await run(3_000);
    expect([...seqs()].sort()).toEqual([1, 2, 3, 4]);
    expect(await read(id)).toMatchObject({ position: 4, lastAnswer: { status: 204 }, failingSince: null });
    expect(sent[0]).toMatchObject({ eventId: "1_1", generations: [1], subscriberId: id });
    outcomes(2);
    await run(2_000);
    expect(seqs()).toHaveLength(5);
  });

  it("leave out what the filter does not select, and store that position too", async () => {
    const { aNode, outcomes, subscribe, read, seqs } = await aCluster();
    const id = await subscribe({ filter: { ...EVERY_OUTCOME, signers: [signer(2)] } });
    const keyed = await subscribe({ name: "keyed", filter: { ...EVERY_OUTCOME, keys: ["shop"] } });
    const { run } = await aNode();
    outcomes(1, 2, 1);
    await run(3_000);
    expect(seqs()).toEqual([2]);
    expect((await read(id))?.position).toBe(3);
    expect((await read(keyed))?.position).toBe(3);
  });

  it("go on in other lanes while one lane fails, which is tried ever later", async () => {
    const { aNode, outcomes, subscribe, read, state, seqs, sent } = await aCluster();
    const id = await subscribe();
    const { run } = await aNode();
    state.answer = ({ event }) =>
      event.kind === "completion" && event.completion.lane.signer === signer(1) ? status(500) : OK;
    outcomes(1, 2, 1, 2, 2);
    await run(60_000);
    expect([...new Set(seqs())]).toEqual([1, 2, 4, 5]);
    expect(seqs().filter((seq) => seq === 1).length).toBeLessThan(10);
    expect(await read(id)).toMatchObject({ position: 0, failingSince: expect.any(Date), nextTryAt: expect.any(Date) });
    state.answer = () => OK;
    await run(120_000);
    expect([...new Set(seqs())]).toEqual([1, 2, 4, 5, 3]);
    expect(await read(id)).toMatchObject({ position: 5, failingSince: null, nextTryAt: null });
    expect(new Set(sent.map(({ eventId }) => eventId)).size).toBe(5);
  });

  // protects [Webhooks] src/domain/webhooks/receiver-pace.ts, src/application/loops/subscriber-run.ts
  it("are tried one at a time and seldom if the receiver is down, and all at once when it is back", async () => {
    const { aNode, outcomes, subscribe, read, state, sent } = await aCluster();
    const id = await subscribe();
    const { run, deliveries } = await aNode();
    state.answer = () => ({ kind: "silence", reason: "no connection" });
    outcomes(...Array.from({ length: 900 }, (_, at) => at + 1));
    await run(600_000);
    expect(sent.length).toBeLessThan(25);
    expect(deliveries.lag.outcomes).toBe(900);
    expect(deliveries.lag.seconds).toBeGreaterThanOrEqual(599);
    state.answer = () => OK;
    await deliveries.settled();
    await run(1_200_000);
    expect((await read(id))?.position).toBe(900);
    expect(new Set(sent.map(({ eventId }) => eventId)).size).toBe(900);
  });

  it("cost nothing while the receiver is down, however often the feed grows", async () => {
    const { aNode, outcomes, subscribe, state, clock, sent } = await aCluster();
    await subscribe();
    const { run, deliveries } = await aNode();
    state.answer = () => ({ kind: "silence", reason: "no connection" });
    outcomes(1, 2, 3, 4);
    await run(60_000);
    const before = sent.length;
    const timers = vi.spyOn(clock, "after");
    for (let times = 0; times < 10; times++) {
      outcomes(5);
      deliveries.feedGrew();
      await clock.advance(25);
    }
    expect(timers).toHaveBeenCalledTimes(10);
    expect(sent).toHaveLength(before);
  });

  it("cost nothing while a silent receiver holds its request, however often the feed grows", async () => {
    const { aNode, outcomes, subscribe, state, clock, sent, database } = await aCluster();
    await subscribe();
    const { run, deliveries, store } = await aNode();
    state.answer = () => new Promise<ReceiverAnswer>(() => undefined);
    const lanes = Array.from({ length: 100 }, (_, at) => at);
    outcomes(...lanes);
    await run(2_000);
    expect(sent).toHaveLength(1);
    const [reads, timers] = [vi.spyOn(store, "feed"), vi.spyOn(clock, "after")];
    for (let times = 0; times < 10; times++) {
      outcomes(...lanes);
      deliveries.feedGrew();
      await clock.advance(25);
    }
    expect(reads, "nothing is read ahead for it").not.toHaveBeenCalled();
    expect(timers).toHaveBeenCalledTimes(10);
    expect(database.state.feed.lastSeq).toBe(1_100);
  });

  it("are looked for seldom while hints of changes arrive, and every second without them", async () => {
    const { aNode, subscribe } = await aCluster();
    await subscribe();
    for (const [isListening, reads] of [
      [true, 2],
      [false, 20],
    ] as const) {
      const { run, store, deliveries } = await aNode(`listening ${isListening}`, () => true, isListening);
      const read = vi.spyOn(store, "subscribers");
      await run(20_000);
      expect(read).toHaveBeenCalledTimes(reads);
      await deliveries.close();
    }
  });

  it.each([
    ["after a fifth of a second", 204, 200],
    ["after a second if all of them fail", 500, 1_000],
  ])("are stored %s", async (_, code, storedAfterMs) => {
    const { aNode, outcomes, subscribe, state, clock } = await aCluster();
    await subscribe();
    const { run, store, deliveries } = await aNode();
    await run(1_000);
    const write = vi.spyOn(store, "writeDeliveries");
    state.answer = () => status(code);
    outcomes(1, 2, 3);
    deliveries.feedGrew();
    await clock.advance(storedAfterMs - 100);
    expect(write).not.toHaveBeenCalled();
    await clock.advance(150);
    expect(write).toHaveBeenCalledTimes(1);
  });

  it("set no timer for a lane that is due while a silent receiver holds its only request", async () => {
    const { aNode, outcomes, subscribe, state, clock, sent, seqs } = await aCluster();
    await subscribe();
    const { run } = await aNode();
    state.answer = () => (sent.length === 1 ? status(500) : new Promise<ReceiverAnswer>(() => undefined));
    outcomes(1, 2);
    await run(1_000);
    expect(seqs(), "the second lane waits for its answer").toEqual([1, 2]);
    // The first lane is due again.
    await clock.advance(2_000);
    const timers = vi.spyOn(clock, "after");
    await clock.advance(5_000);
    expect(timers).not.toHaveBeenCalled();
  });

  // protects [Webhooks] src/application/loops/subscriber-run.ts
  it("go on side by side while receivers that fell silent hold all requests of the node", async () => {
    const { aNode, outcomes, subscribe, state, sent } = await aCluster();
    await Promise.all(Array.from({ length: 18 }, (_, at) => subscribe({ name: `silent-${at}` })));
    const { run } = await aNode();
    const lanes = Array.from({ length: 70 }, (_, at) => at);
    outcomes(...lanes, ...lanes);
    await run(5_000);
    sent.length = 0;
    state.answer = () => new Promise<ReceiverAnswer>(() => undefined);
    outcomes(...lanes);
    await run(1_000);
    const held = new Map<string, number>();
    for (const { subscriberId } of sent) held.set(subscriberId, (held.get(subscriberId) ?? 0) + 1);
    expect([...held.values()].sort((a, b) => a - b).slice(0, 3), "the last two find no room").toEqual([4, 4, 64]);
  });

  it("wait as long as the receiver asks", async () => {
    const { aNode, outcomes, subscribe, state, sent } = await aCluster();
    await subscribe();
    const { run } = await aNode();
    state.answer = () => status(429, 600_000);
    outcomes(1, 2, 3);
    await run(599_000);
    expect(sent).toHaveLength(1);
    state.answer = () => OK;
    await run(10_000);
    expect(new Set(sent.map(({ eventId }) => eventId)).size).toBe(3);
  });

  it("end when the receiver answers 410, and begin again when somebody resumes them", async () => {
    const { aNode, outcomes, subscribe, read, state, sent, database, telemetry } = await aCluster();
    const id = await subscribe();
    const { run, deliveries } = await aNode();
    state.answer = () => status(410);
    outcomes(1, 2, 3);
    await run(10_000);
    expect(sent).toHaveLength(1);
    expect(await read(id)).toMatchObject({ paused: { by: "GONE", why: "HTTP 410" }, position: 0, owner: null });
    expect(telemetry.of("alert")).toMatchObject([{ code: "WEBHOOK_PAUSED", severity: "ERROR", subscriber: "books" }]);
    expect(deliveries.troubles).toMatchObject([{ code: "WEBHOOK_PAUSED", subscriber: "books" }]);
    state.answer = () => OK;
    const resume = {
      seen: { subscriberId: id, filter: EVERY_OUTCOME },
      change: { action: "resume" },
      actor: "operator:me",
      reason: null,
    } as const;
    await database.connect().changeSubscriber(resume);
    await run(5_000);
    expect(await read(id)).toMatchObject({ paused: null, position: 3 });
    expect(telemetry.of("alert.resolved")).toMatchObject([{ code: "WEBHOOK_PAUSED", subscriber: "books" }]);
    const pause = {
      seen: { subscriberId: id, filter: EVERY_OUTCOME },
      change: { action: "pause" },
      actor: "operator:me",
      reason: null,
    } as const;
    await database.connect().changeSubscriber(pause);
    await run(5_000);
    expect(deliveries.troubles, "an operator knows").toEqual([]);
  });

  it("end when the receiver answers 410 after it took others, which stay delivered", async () => {
    const { aNode, outcomes, subscribe, read, state, seqs, database } = await aCluster();
    const id = await subscribe();
    const { run } = await aNode();
    state.answer = ({ event }) => (event.kind === "completion" && event.completion.seq >= 3 ? status(410) : OK);
    outcomes(1, 1, 1, 1, 1);
    await run(10_000);
    expect(await read(id)).toMatchObject({ paused: { by: "GONE" }, position: 2, lastAnswer: { status: 410 } });
    expect(seqs()).toEqual([1, 2, 3]);
    state.answer = () => OK;
    const resume = {
      seen: { subscriberId: id, filter: EVERY_OUTCOME },
      change: { action: "resume" },
      actor: "operator:me",
      reason: null,
    } as const;
    await database.connect().changeSubscriber(resume);
    await run(5_000);
    expect(seqs()).toEqual([1, 2, 3, 3, 4, 5]);
  });

  // protects [Webhooks] src/application/loops/subscriber-run.ts
  it("are begun by no node whose heartbeat is late, which may have been replaced", async () => {
    const { aNode, outcomes, subscribe, seqs } = await aCluster();
    await subscribe();
    let isAlive = true;
    const { run } = await aNode("frozen", () => isAlive);
    outcomes(1);
    await run(2_000);
    isAlive = false;
    outcomes(1, 2);
    await run(60_000);
    expect(seqs()).toEqual([1]);
  });

  it("are given up after failing for too long, across takeovers, and nothing is lost", async () => {
    const { aNode, outcomes, subscribe, read, state, telemetry, seqs, database } = await aCluster();
    const id = await subscribe({ giveUpAfterMs: 5 * HOUR_MS });
    const first = await aNode("one");
    state.answer = () => status(500);
    outcomes(1);
    await first.run(3 * HOUR_MS);
    expect(telemetry.of("alert")).toMatchObject([{ code: "WEBHOOK_FAILING", subscriber: "books" }]);
    expect((await read(id))?.paused).toBeNull();
    first.deliveries.dropAll();
    await database.connect().retireInstance(first.instanceId);
    const second = await aNode("two");
    await second.run(3 * HOUR_MS);
    expect(await read(id)).toMatchObject({ paused: { by: "GAVE_UP", why: "HTTP 500" }, position: 0 });
    state.answer = () => OK;
    const change = { action: "resume" } as const;
    await database.connect().changeSubscriber({
      seen: { subscriberId: id, filter: EVERY_OUTCOME },
      change,
      actor: "operator:me",
      reason: null,
    });
    await second.run(5_000);
    expect(seqs().at(-1)).toBe(1);
    expect((await read(id))?.position).toBe(1);
  });

  // protects [Webhooks] src/application/loops/subscriber-run.ts
  it("announce a new epoch of the feed after all that came before it", async () => {
    const { aNode, outcomes, subscribe, read, sent, database } = await aCluster();
    const id = await subscribe();
    const { run } = await aNode();
    outcomes(1);
    await run(2_000);
    Object.assign(database.state.feed, { epoch: 2, epochStartsAfter: 1 });
    outcomes(1);
    await run(3_000);
    expect(sent.map(({ eventId }) => eventId)).toEqual(["1_1", "2_epoch", "2_2"]);
    expect(sent[1]?.event).toEqual({ kind: "epoch.changed", epoch: 2, resumeAfter: 1 });
    expect(await read(id)).toMatchObject({ epoch: 2, position: 2 });
  });

  // protects [Webhooks] src/adapters/postgres/statements/subscriber.ts, src/application/loops/subscriber-run.ts
  it("announce a new epoch even if somebody has them replayed before that", async () => {
    const { aNode, outcomes, subscribe, read, sent, database, state } = await aCluster();
    const id = await subscribe();
    const { run } = await aNode();
    outcomes(1);
    await run(2_000);
    state.answer = () => status(503);
    Object.assign(database.state.feed, { epoch: 2, epochStartsAfter: 1 });
    outcomes(1);
    await run(1_000);
    state.answer = () => OK;
    sent.length = 0;
    const change = { action: "replay", after: 0 } as const;
    await database.connect().changeSubscriber({
      seen: { subscriberId: id, filter: EVERY_OUTCOME },
      change,
      actor: "operator:me",
      reason: null,
    });
    await run(5_000);
    expect(sent.map(({ eventId }) => eventId)).toEqual(["2_epoch", "1_1", "2_2"]);
    expect(await read(id)).toMatchObject({ epoch: 2, position: 2 });
  });

  it("announce that retention removed outcomes, and continue after them", async () => {
    const { aNode, outcomes, subscribe, read, sent, database } = await aCluster();
    const id = await subscribe();
    outcomes(1, 1, 1);
    database.state.completions.splice(0, 2);
    database.state.feed.truncatedThrough = 2;
    const { run } = await aNode();
    await run(3_000);
    expect(sent.map(({ event }) => event.kind)).toEqual(["feed.truncated", "completion"]);
    expect(sent[0]?.event).toEqual({ kind: "feed.truncated", after: 0, resumeAfter: 2 });
    expect((await read(id))?.position).toBe(3);
  });

  it("sign with both generations while a secret is rotated", async () => {
    const { aNode, outcomes, subscribe, sent, database } = await aCluster();
    const id = await subscribe();
    const { run } = await aNode();
    await run(1_000);
    const change = { action: "rotate", generation: 1, secretId: "known", overlapMs: 60_000 } as const;
    await database.connect().changeSubscriber({
      seen: { subscriberId: id, filter: EVERY_OUTCOME },
      change,
      actor: "operator:me",
      reason: null,
    });
    outcomes(1);
    await run(3_000);
    outcomes(1);
    await run(90_000);
    outcomes(1);
    await run(3_000);
    expect(sent.map(({ generations }) => generations)).toEqual([[2, 1], [2, 1], [2]]);
  });

  // protects [Webhooks] src/application/loops/deliveries.ts
  it("are stored by nobody but the owner of the term: a replay is not overwritten", async () => {
    const { aNode, outcomes, subscribe, read, seqs, database, telemetry, clock } = await aCluster();
    const id = await subscribe();
    const { run } = await aNode();
    outcomes(1, 1);
    await run(1_000);
    await clock.advance(10);
    const change = { action: "replay", after: 0 } as const;
    await database.connect().changeSubscriber({
      seen: { subscriberId: id, filter: EVERY_OUTCOME },
      change,
      actor: "operator:me",
      reason: null,
    });
    await run(4_000);
    expect(seqs().filter((seq) => seq === 1).length).toBe(2);
    expect((await read(id))?.position).toBe(2);
    expect(telemetry.of("webhook.taken").length).toBeGreaterThan(1);
  });

  it("stop after one window if the database does not answer", async () => {
    const { aNode, outcomes, subscribe, seqs, read } = await aCluster();
    const id = await subscribe();
    const { run, store } = await aNode();
    await run(1_000);
    outcomes(...Array.from({ length: 3_000 }, (_, at) => at % 50));
    const write = store.writeDeliveries.bind(store);
    store.writeDeliveries = () => Promise.reject(new Error("the database is away"));
    await run(10_000);
    expect(seqs().length).toBeLessThanOrEqual(1_000);
    store.writeDeliveries = write;
    await run(20_000);
    expect((await read(id))?.position).toBe(3_000);
    expect(seqs()).toHaveLength(3_000);
  });

  it("are left to other nodes by one that cannot derive the secret, and an alert says so", async () => {
    const { aNode, outcomes, subscribe, sent, telemetry } = await aCluster();
    await subscribe({ secretId: "unknown" });
    const { run } = await aNode();
    outcomes(1);
    await run(180_000);
    expect(sent).toEqual([]);
    expect(telemetry.of("alert")).toMatchObject([{ code: "WEBHOOK_UNSERVED", subscriber: "books" }]);
  });

  it("end with a node that closes, without a repeat at the next one", async () => {
    const { aNode, outcomes, subscribe, seqs, database } = await aCluster();
    await subscribe();
    const first = await aNode("one");
    outcomes(1, 2, 3);
    first.deliveries.look();
    await first.run(1_000);
    const closed = first.deliveries.close();
    await first.run(3_000);
    await closed;
    await database.connect().retireInstance(first.instanceId);
    const second = await aNode("two");
    outcomes(4);
    await second.run(5_000);
    expect([...seqs()].sort()).toEqual([1, 2, 3, 4]);
  });
});
