import { describe, expect, it, vi } from "vitest";
import type { ApiKey, Refusal } from "../../../src/adapters/http/exchange/options.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { httpApp } from "../../support/http-app.ts";
import { RECIPIENT_EIP55, SIGNER_EIP55, sampleCreated, sampleTxId } from "../../support/scripted-api.ts";

const [SLOW, FAST, FREE] = ["s".repeat(22), "f".repeat(22), "n".repeat(22)] as const;
const KEYS: readonly ApiKey[] = [
  { name: "slow", secret: SLOW, scopes: ["submit", "reserve"], createsPerSecond: 3 },
  { name: "slow", secret: "o".repeat(22), scopes: ["submit"], createsPerSecond: 3 },
  { name: "fast", secret: FAST, createsPerSecond: 1_000 },
  { name: "free", secret: FREE },
];
const intent = { signer: SIGNER_EIP55, payload: { to: RECIPIENT_EIP55, value: "1" } };

function bench() {
  const clock = createManualClock();
  const refusals: Refusal[] = [];
  const create = vi.fn(async () => sampleCreated());
  const createBatch = vi.fn(async (requests: readonly object[]) => requests.map(() => sampleCreated()));
  const tooMany = { rule: "maxReservations", limit: 16, retryAfterSeconds: 1 };
  const reserveNonce = vi.fn(() => Promise.reject(new FencepostError("QUOTA_EXCEEDED", "too many", tooMany)));
  const checkPolicy = vi.fn(async () => ({ allowed: true, value: 1n, cost: 2n }));
  const onRefused = (refusal: Refusal) => void refusals.push(refusal);
  const app = httpApp({ create, createBatch, reserveNonce, checkPolicy }, { apiKeys: KEYS, clock, onRefused });
  const post = (secret: string, url = "/api/v1/tx", payload: object = intent) =>
    app.inject({ method: "POST", url, headers: { authorization: `Bearer ${secret}` }, payload });
  return { clock, refusals, create, createBatch, checkPolicy, post };
}

describe("an API key with a rate limit", () => {
  // protects [Attacks] src/domain/pace/rate.ts, src/application/key-rates.ts, src/application/authority.ts
  it("gets 429 for creates above the rate limit", async () => {
    const { clock, refusals, create, post } = bench();
    const answers = [];
    for (let each = 0; each < 4; each++) answers.push(await post(SLOW));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([202, 202, 202, 429]);
    expect(answers.map(({ headers }) => headers.ratelimit)).toEqual(
      [2, 1, 0, 0].map((left) => `"createsPerSecond";r=${left};t=1`),
    );
    for (const { headers } of answers) expect(headers["ratelimit-policy"]).toBe('"createsPerSecond";q=3;w=1');
    expect(answers[3]?.headers["retry-after"]).toBe("1");
    const exceeded = { code: "QUOTA_EXCEEDED", rule: "createsPerSecond", limit: 3, retryAfterSeconds: 1 };
    expect(answers[3]?.json()).toMatchObject(exceeded);
    expect(create).toHaveBeenCalledTimes(3);
    expect(refusals).toEqual([
      { code: "QUOTA_EXCEEDED", rule: "createsPerSecond", key: "slow", method: "POST", route: "/api/v1/tx" },
    ]);
    await clock.advance(334);
    expect((await post(SLOW)).statusCode).toBe(202);
    expect((await post(SLOW)).statusCode).toBe(429);
    await clock.advance(1_000);
    expect((await post(SLOW)).headers.ratelimit).toBe('"createsPerSecond";r=2;t=1');
  });

  // protects [Attacks] src/domain/pace/rate.ts, src/application/key-rates.ts, src/application/authority.ts
  it("has one quota for all its secrets, separate from other keys", async () => {
    const { post } = bench();
    for (let each = 0; each < 3; each++) await post(each === 0 ? SLOW : "o".repeat(22));
    expect((await post(SLOW)).statusCode).toBe(429);
    expect((await post(FAST)).headers.ratelimit).toBe('"createsPerSecond";r=999;t=1');
    const free = await post(FREE);
    expect(free.statusCode).toBe(202);
    expect(free.headers).not.toHaveProperty("ratelimit");
    expect(free.headers).not.toHaveProperty("ratelimit-policy");
  });

  // protects [Attacks] src/domain/pace/rate.ts, src/application/key-rates.ts, src/application/authority.ts
  it("is charged per item of a batch", async () => {
    const { refusals, createBatch, post } = bench();
    const items = [1, 2, 3, 4, 5].map((value) => ({ ...intent, payload: { to: RECIPIENT_EIP55, value: `${value}` } }));
    const batch = await post(SLOW, "/api/v1/tx/batch", { transactions: ["no object", ...items] });
    const results: { status: number; rule?: string }[] = batch.json().results;
    expect(results.map(({ status }) => status)).toEqual([400, 202, 202, 202, 429, 429]);
    expect(results[5]).toMatchObject({ code: "QUOTA_EXCEEDED", rule: "createsPerSecond" });
    expect(createBatch).toHaveBeenCalledExactlyOnceWith(items.slice(0, 3), "slow", expect.anything());
    expect(batch.headers.ratelimit).toBe('"createsPerSecond";r=0;t=1');
    expect(refusals).toHaveLength(2);
    const next = await post(SLOW, "/api/v1/tx/batch", { transactions: items });
    expect(next.json().results.map(({ status }: { status: number }) => status)).toEqual([429, 429, 429, 429, 429]);
    expect(createBatch).toHaveBeenCalledOnce();
  });

  // protects [Attacks] src/application/authority.ts, src/contract/calls/policies.ts
  it("is charged for dry runs too, because each one calls the chain like a create", async () => {
    const { checkPolicy, post } = bench();
    const answers = [];
    for (let each = 0; each < 4; each++) answers.push(await post(SLOW, "/api/v1/policy/check"));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 429]);
    expect(answers.map(({ headers }) => headers.ratelimit)).toEqual(
      [2, 1, 0, 0].map((left) => `"createsPerSecond";r=${left};t=1`),
    );
    expect(checkPolicy).toHaveBeenCalledTimes(3);
    expect((await post(SLOW)).statusCode, "of the same rate").toBe(429);
    expect((await post(FREE, "/api/v1/policy/check")).headers).not.toHaveProperty("ratelimit");
  });

  // protects [Attacks] src/application/authority.ts, src/adapters/http/admission/rate-headers.ts
  it("is charged for nonce reservations too", async () => {
    const { post } = bench();
    const refused = await post(SLOW, "/api/v1/nonces", { signer: SIGNER_EIP55 });
    expect(refused.statusCode).toBe(429);
    expect(refused.headers).toMatchObject({
      "retry-after": "1",
      "ratelimit-policy": '"maxReservations";q=16, "createsPerSecond";q=3;w=1',
      ratelimit: '"maxReservations";r=0;t=1, "createsPerSecond";r=2;t=1',
    });
    for (let each = 0; each < 2; each++) await post(SLOW);
    const tooFast = await post(SLOW, "/api/v1/nonces", { signer: SIGNER_EIP55 });
    expect(tooFast.json()).toMatchObject({ status: 429, rule: "createsPerSecond" });
  });

  it("gets no quota headers on routes that are not rate-limited", async () => {
    const { post } = bench();
    const read = await post(SLOW, `/api/v1/tx/${sampleTxId(1)}/cancel`, { reason: "changed my mind" });
    expect(read.headers).not.toHaveProperty("ratelimit");
  });
});
