import { beforeEach, describe, expect, it } from "vitest";
import {
  admissionQueue,
  type RefusalReport,
  type WaitingRequest,
} from "../../../../src/adapters/http/admission/admission-queue.ts";
import { type Admittance, OPEN } from "../../../../src/application/loops/reception.ts";
import { PEER_CREATES_PATH, PEER_SCHEME } from "../../../../src/contract/peer-wire.ts";
import { FencepostError, unavailable } from "../../../../src/domain/errors.ts";
import { createManualClock, type ManualClock } from "../../../doubles/manual-clock.ts";
import { httpApp } from "../../../support/http-app.ts";

const TURN_MS = 10;
const LIMIT = 300;
const refusal = () => unavailable("not now");

let clock: ManualClock;
let admittance: Admittance;
let queue: ReturnType<typeof admissionQueue>;
let said: string[];
let reports: RefusalReport[];
let waiting: number[];
let arrivals: { keepComing: boolean };
const onWaiting = (count: number) => waiting.push(count);
beforeEach(() => {
  clock = createManualClock();
  admittance = OPEN;
  said = [];
  reports = [];
  waiting = [];
  arrivals = { keepComing: false };
  const onRefused = (report: RefusalReport) => reports.push(report);
  queue = admissionQueue({
    clock,
    arrivals,
    admittance: () => admittance,
    turnMs: TURN_MS,
    limit: LIMIT,
    onRefused,
    onWaiting,
  });
});

function visitor(name: string, arrivedMs = clock.monotonicMs(), isGone = false): WaitingRequest {
  const enter: WaitingRequest["enter"] = (error) => said.push(error === undefined ? name : `${name}: ${error.message}`);
  return { arrivedMs, isGone: () => isGone, enter };
}

function ask(count: number, arrivedMs?: number): void {
  for (let n = 0; n < count; n++) queue(visitor(`v${n}`, arrivedMs));
}

describe("the admission queue for HTTP requests", () => {
  it("admits a request immediately if it arrives early in an event loop turn", () => {
    ask(3);
    expect(said).toEqual(["v0", "v1", "v2"]);
  });

  // protects [Short of time] src/adapters/http/admission/admission-queue.ts
  it("admits requests that arrive late in an event loop turn in the next turn", async () => {
    queue(visitor("early"));
    ask(200, TURN_MS);
    queue(visitor("last", 0));
    expect(said).toEqual(["early"]);
    await clock.advance(0);
    expect(said).toEqual(["early", ...Array.from({ length: 200 }, (_, n) => `v${n}`), "last"]);
  });

  // protects [Short of time] src/adapters/http/admission/admission-queue.ts
  it("delays requests while more connections arrive", async () => {
    arrivals.keepComing = true;
    ask(3);
    const gathering = clock.advance(100);
    expect(said).toEqual([]);
    arrivals.keepComing = false;
    await gathering;
    expect(said).toEqual(["v0", "v1", "v2"]);
  });

  // protects [Short of time] src/adapters/http/admission/admission-queue.ts
  it("delays requests for at most half a second, or until enough requests wait", async () => {
    const turn = { ...clock, soon: (callback: () => void) => void clock.after(10, callback) };
    const crowded = { clock: turn, arrivals: { keepComing: true }, admittance: () => OPEN, turnMs: TURN_MS };
    queue = admissionQueue({ ...crowded, limit: 2_000, onRefused: () => undefined, onWaiting });
    ask(1);
    await clock.advance(490);
    expect(said).toEqual([]);
    await clock.advance(20);
    expect(said).toEqual(["v0"]);
    said = [];
    ask(512);
    await clock.advance(10);
    expect(said).toHaveLength(64);
  });

  // protects [Short of time] src/application/writer/turn.ts, src/application/writer/committer.ts
  it("reports the number of waiting requests at every change, down to zero", async () => {
    queue(visitor("early"));
    expect(waiting).toEqual([]);
    ask(2, TURN_MS);
    expect(waiting).toEqual([1, 2]);
    await clock.advance(0);
    expect(waiting.at(-1)).toBe(0);
  });

  // protects [Short of time] src/adapters/http/admission/admission-queue.ts
  it("admits fewer requests at once if an event loop turn takes too long", async () => {
    const perTurn: number[] = [];
    const slowly = { ...clock, soon: (callback: () => void) => void clock.after(2 * TURN_MS, callback) };
    queue = admissionQueue({
      clock: slowly,
      arrivals,
      admittance: () => OPEN,
      turnMs: TURN_MS,
      limit: 2_000,
      onRefused: () => undefined,
      onWaiting,
    });
    queue(visitor("early"));
    ask(1_000, TURN_MS);
    for (let turn = 0; turn < 4; turn++) {
      const before = said.length;
      await clock.advance(2 * TURN_MS);
      perTurn.push(said.length - before);
    }
    expect(perTurn).toEqual([64, 64, 64, 64]);
    const quick = admissionQueue({
      clock,
      arrivals,
      admittance: () => OPEN,
      turnMs: TURN_MS,
      limit: 2_000,
      onRefused: () => undefined,
      onWaiting,
    });
    quick(visitor("early"));
    said = [];
    for (let n = 0; n < 64 + 128 + 256; n++) quick(visitor(`q${n}`, clock.monotonicMs() + TURN_MS));
    await clock.advance(0);
    expect(said).toHaveLength(64 + 128 + 256);
  });

  // protects [Short of time] src/adapters/http/admission/admission-queue.ts, src/application/loops/reception.ts
  it("keeps requests unread while the node is not ready", async () => {
    admittance = { kind: "soon", refusal };
    queue(visitor("a"));
    await clock.advance(3_000);
    queue(visitor("b"));
    expect(said).toEqual([]);
    await clock.advance(1_020);
    expect(said).toEqual(["a: not now"]);
    admittance = OPEN;
    await clock.advance(20);
    expect(said).toEqual(["a: not now", "b"]);
  });

  it("refuses new and waiting requests at once while the node is closed", async () => {
    admittance = { kind: "soon", refusal };
    queue(visitor("a"));
    admittance = { kind: "closed", refusal };
    await clock.advance(20);
    queue(visitor("b"));
    expect(said).toEqual(["a: not now", "b: not now"]);
  });

  // protects [Short of time] src/adapters/http/admission/admission-queue.ts
  it("has a maximum length", async () => {
    admittance = { kind: "soon", refusal };
    queue(visitor("gone", 0, true));
    ask(LIMIT - 1);
    queue(visitor("one too many"));
    expect(said).toEqual(["one too many: too many requests are queued on this node; nothing was accepted"]);
    admittance = OPEN;
    await clock.advance(40);
    expect(said).toHaveLength(LIMIT + 1);
    expect(said).not.toContain("gone");
  });

  // protects [Short of time] src/adapters/http/app.ts, src/adapters/http/admission/admission-queue.ts
  it("reports refused requests as one count, not one by one", async () => {
    admittance = { kind: "closed", refusal };
    ask(14_500);
    expect(reports).toEqual([]);
    await clock.advance(1_000);
    ask(1);
    await clock.advance(5_000);
    expect(reports).toEqual([
      { refused: 14_500, waiting: 0, reason: "not now" },
      { refused: 1, waiting: 0, reason: "not now" },
    ]);
  });
});

describe("an HTTP request to an overloaded node", () => {
  const closed = {
    admittance: () => ({ kind: "closed" as const, refusal }),
    turnMs: TURN_MS,
    limit: 1,
    onWaiting: () => undefined,
  };
  const options = { admission: { ...closed, onRefused: () => undefined } };

  // protects [Short of time] src/adapters/http/app.ts, src/adapters/http/admission/admission-queue.ts
  it.each(["/api/v1/tx", "/api/v1/tx/batch"])("is refused before its body is read, if it goes to %s", async (url) => {
    const headers = { "content-type": "application/json" };
    const answer = await httpApp({}, options).inject({ method: "POST", url, headers, payload: "{ this is no JSON" });
    expect(answer.statusCode).toBe(503);
    expect(answer.headers["retry-after"]).toBe("1");
    expect(answer.json()).toMatchObject({ code: "UNAVAILABLE", detail: "not now" });
  });

  it("is refused before it waits, if it has no API key", async () => {
    const secured = { ...options, apiKeys: [{ name: "a", secret: "s".repeat(22) }] };
    const answer = await httpApp({}, secured).inject({ method: "POST", url: "/api/v1/tx", payload: {} });
    expect(answer.statusCode).toBe(401);
  });

  describe("from another node", () => {
    const SIGNED = `${PEER_SCHEME} signed`;
    const admit = async (_: string, authorization?: string) => {
      if (authorization !== SIGNED) throw new FencepostError("UNAUTHENTICATED", "a stranger");
      return () => undefined;
    };
    const full = { admittance: () => OPEN, turnMs: 0, limit: 0, onRefused: () => undefined, onWaiting };
    const act = async () => unavailable("not asked for");
    const asked: unknown[] = [];
    const create = async (creates: readonly unknown[]) => {
      asked.push(...creates);
      return [];
    };
    const post = (authorization: string, admission: typeof full) =>
      httpApp({}, { admission, peer: { admit, create, act, kill: async () => undefined } }).inject({
        method: "POST",
        url: PEER_CREATES_PATH,
        headers: { authorization, "content-type": "application/json" },
        payload: { creates: [], repeat: false },
      });

    // protects [Short of time] src/adapters/http/app.ts
    it("is refused before any effect if the queue is full", async () => {
      const answer = await post(SIGNED, full);
      expect(answer.statusCode).toBe(503);
      expect(answer.json()).toMatchObject({ code: "UNAVAILABLE" });
      expect(asked).toEqual([]);
      expect((await post(SIGNED, { ...full, turnMs: TURN_MS })).statusCode).toBe(200);
    });

    // protects [Short of time] src/adapters/http/app.ts
    it("is not queued if its signature is invalid", async () => {
      expect((await post("Bearer stranger", full)).statusCode).toBe(401);
    });
  });

  it("is answered if it is a health check", async () => {
    const app = httpApp({ nodes: async () => [] }, options);
    expect((await app.inject("/api/v1/nodes")).statusCode).toBe(200);
    expect((await app.inject("/healthz")).statusCode).toBe(200);
  });
});
