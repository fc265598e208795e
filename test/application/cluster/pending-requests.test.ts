import { describe, expect, it } from "vitest";
import { PendingRequests } from "../../../src/application/cluster/pending-requests.ts";
import type { Intent } from "../../../src/domain/transaction/transaction.ts";
import { StoreUnavailable } from "../../../src/ports/lane-store.ts";
import type { LeftRequest, LeftStanding } from "../../../src/ports/left-request-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { aLane, anIntent } from "../../support/lane-samples.ts";

const MIB = 1024 * 1024;

/** A fake request table in which each request gets the answer that `answerOf` returns for it. */
function bench(answerOf: (request: LeftRequest) => string | null, isBegun = true) {
  const clock = createManualClock();
  const accepted: Intent[] = [];
  const written: number[] = [];
  const left = new Map<string, LeftRequest>();
  const store = {
    leaveRequests: async (requests: readonly LeftRequest[]) => {
      written.push(requests.length);
      for (const request of requests) left.set(request.leftId, request);
    },
    leftStanding: async (leftIds: readonly string[]): Promise<readonly LeftStanding[]> =>
      [...left.values()].flatMap((request) =>
        leftIds.includes(request.leftId) ? [{ leftId: request.leftId, begun: isBegun, answer: answerOf(request) }] : [],
      ),
    withdrawRequest: async (leftId: string, accepts: readonly Intent[]) => {
      if (!isBegun) accepted.push(...accepts);
      return !isBegun && left.delete(leftId);
    },
  };
  const entropy = createSeededEntropy(1, clock);
  const road = new PendingRequests({
    ...{ store, clock, entropy, wakeUps: { isListening: true }, perLane: 100, onEnqueued: () => undefined },
  });
  const ask = (action: string, text = "", lane = aLane()) => road.ask(lane, { action, body: { text }, owner: null });
  return { clock, store, left, road, accepted, written, ask };
}

describe("a request enqueued for a lane's owner", () => {
  it.each(["", "not JSON", "null", "7"])(
    // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/ports/peers.ts
    "has an unknown outcome if the response is '%s'",
    async (said) => {
      const { clock, ask } = bench(({ action }) => (action === "odd" ? said : JSON.stringify({ answer: action })));
      const both = Promise.all([ask("odd"), ask("usual")]);
      await clock.advance(1_000);
      expect(await both).toMatchObject([{ extras: { outcome: "unknown" } }, { answer: "usual" }]);
    },
  );

  it("is refused with UNAVAILABLE if the owner returned an unknown error code", async () => {
    const { clock, ask } = bench(() => JSON.stringify({ problem: { code: "TOO_NEW", detail: "no" } }));
    const asked = ask("order");
    await clock.advance(1_000);
    expect(await asked).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 } });
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/cluster/pending-requests.ts, src/adapters/postgres/statements/left-request.ts
  it("is refused with QUEUE_FULL while 64 MiB of requests are waiting", async () => {
    const { clock, left, ask } = bench(() => null);
    const waiting = Array.from({ length: 63 }, () => ask("large", "x".repeat(MIB)));
    expect(await ask("too much", "x".repeat(MIB))).toMatchObject({ code: "QUEUE_FULL" });
    const small = ask("small");
    await clock.advance(9_000);
    for (const each of await Promise.all([...waiting, small])) expect(each).toMatchObject({ code: "UNAVAILABLE" });
    void ask("again", "x".repeat(MIB));
    await clock.advance(1);
    expect([...left.values()].map(({ action }) => action).slice(-2)).toEqual(["small", "again"]);
  });

  it("survives a short database outage", async () => {
    const { clock, store, ask } = bench(() => JSON.stringify({ answer: "done" }));
    const { leftStanding } = store;
    store.leftStanding = () => Promise.reject(new StoreUnavailable("away"));
    const soon = ask("soon");
    await clock.advance(5_000);
    store.leftStanding = leftStanding;
    await clock.advance(1_000);
    store.leftStanding = () => Promise.reject(new StoreUnavailable("away"));
    const never = ask("never");
    await clock.advance(9_000);
    expect(await soon).toMatchObject({ answer: "done" });
    expect(await never).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown" } });
  });

  it("is written again if a busy server ended the first try before its commit", async () => {
    const { clock, store, written, ask } = bench(() => JSON.stringify({ answer: "done" }));
    const { leaveRequests } = store;
    store.leaveRequests = () => {
      store.leaveRequests = leaveRequests;
      return Promise.reject(new StoreUnavailable("no time", { busy: true }));
    };
    const asked = ask("some");
    await clock.advance(1_000);
    expect(await asked).toMatchObject({ answer: "done" });
    expect(written).toEqual([1]);
  });

  it("has an unknown outcome if its row is gone from the database", async () => {
    const { clock, left, ask } = bench(() => null);
    const asked = ask("lost");
    await clock.advance(1);
    left.clear();
    await clock.advance(9_000);
    expect(await asked).toMatchObject({ extras: { outcome: "unknown" } });
  });

  it("shares one database write with concurrent requests for all lanes", async () => {
    const { clock, written, ask } = bench(() => JSON.stringify({ answer: "done" }));
    const all = Array.from({ length: 80 }, () => ask("some"));
    await clock.advance(1_000);
    expect(await Promise.all(all)).toHaveLength(80);
    expect(written).toEqual([50, 30]);
  });

  it("has its result read at once when a hint reports the owner's response", async () => {
    let answer: string | null = null;
    const { clock, road, ask } = bench(() => answer);
    let isAnswered = false;
    void ask("soon").then(() => {
      isAnswered = true;
    });
    await clock.advance(10);
    answer = JSON.stringify({ answer: "done" });
    road.look();
    await clock.advance(1);
    expect(isAnswered).toBe(true);
  });

  it("is accepted without an owner if it contains only creates", async () => {
    const { clock, left, road, accepted } = bench(() => null, false);
    const lane = aLane();
    const accepts = [anIntent(lane, { requestId: "one" }), anIntent(lane)];
    const asked = road.ask(lane, { action: "create", body: {}, owner: null }, { accepts });
    await clock.advance(4_500);
    const created = { outcome: "created", lane, nonce: null, state: "CREATED" };
    const results = accepts.map(({ txId, requestId }) => ({ ...created, txId, requestId }));
    expect(await asked).toEqual({ answer: { results } });
    expect([accepted, [...left]]).toEqual([accepts, []]);
  });
});
