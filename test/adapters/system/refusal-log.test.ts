import { describe, expect, it } from "vitest";
import type { Refusal } from "../../../src/adapters/http/exchange/options.ts";
import { type NotedRefusal, refusalLog } from "../../../src/adapters/system/refusal-log.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { httpApp } from "../../support/http-app.ts";

const REFUSAL: Refusal = { code: "FORBIDDEN", rule: "scope:admin", key: "shop", method: "GET", route: "/api/v1/keys" };
const MINUTE_MS = 60_000;

function bench() {
  const clock = createManualClock();
  const said: NotedRefusal<Refusal>[] = [];
  return { clock, said, note: refusalLog<Refusal>(clock, (noted) => void said.push(noted)) };
}

describe("the log of refused API requests", () => {
  it("logs the first refusal at once", async () => {
    const { clock, said, note } = bench();
    for (let each = 0; each < 1_000; each++) note(REFUSAL);
    expect(said).toEqual([{ ...REFUSAL, times: 1 }]);
    await clock.advance(MINUTE_MS);
    expect(said).toEqual([
      { ...REFUSAL, times: 1 },
      { ...REFUSAL, times: 999 },
    ]);
    note(REFUSAL);
    expect(said).toHaveLength(3);
    await clock.advance(MINUTE_MS);
    expect(said).toHaveLength(3);
  });

  it("logs refusals of different keys separately", async () => {
    const { clock, said, note } = bench();
    const other = { ...REFUSAL, key: "wallet" };
    for (const refusal of [REFUSAL, other, other]) note(refusal);
    await clock.advance(MINUTE_MS);
    expect(said).toEqual([
      { ...REFUSAL, times: 1 },
      { ...other, times: 1 },
      { ...other, times: 1 },
    ]);
  });

  // protects [Attacks] src/adapters/system/refusal-log.ts
  it("has a limited number of lines, however many requests are refused", async () => {
    const { clock, said, note } = bench();
    const STRETCHES = 6;
    let noted = 0;
    for (let second = 0; second < 10 * STRETCHES; second++) {
      for (let each = 0; each < 500; each++) note({ ...REFUSAL, rule: `rule-${noted++}` });
      await clock.advance(1_000);
    }
    await clock.advance(MINUTE_MS);
    expect(said.length).toBeLessThanOrEqual(60 * (STRETCHES + 1));
    expect(said.reduce((sum, { times }) => sum + times, 0)).toBe(noted);
  });
});

describe("the audit entry of a refused API request", () => {
  // protects [Attacks] src/adapters/http/exchange/problems.ts
  it("names the API key and the violated rule", async () => {
    const refusals: Refusal[] = [];
    const apiKeys = [{ name: "shop", secret: "s".repeat(22) }];
    const app = httpApp({}, { apiKeys, onRefused: (refusal) => void refusals.push(refusal) });
    const get = (secret: string) =>
      app.inject({ url: "/api/v1/keys", headers: { authorization: `Bearer ${secret}` } }).then((r) => r.statusCode);
    expect([await get("s".repeat(22)), await get("guessed")]).toEqual([403, 401]);
    expect(refusals).toEqual([REFUSAL, { ...REFUSAL, code: "UNAUTHENTICATED", rule: "apiKey", key: null }]);
  });
});
