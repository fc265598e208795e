import { describe, expect, it } from "vitest";
import { LONGEST_PAUSE_MS, pauseMs, resultOf, retryAfterMs } from "../../../src/domain/webhooks/receiver-answers.ts";
import {
  afterDelivery,
  afterFailure,
  FRESH,
  isDown,
  MOST_AT_ONCE,
  mayTry,
} from "../../../src/domain/webhooks/receiver-pace.ts";

const failed = (lane: string | null, of: { readonly nowMs?: number; readonly throttled?: boolean } = {}) => ({
  ...{ nowMs: 0, throttled: false, lane, pauseMs: (failures: number) => failures * 100, ...of },
});

describe("the answer of a receiver", () => {
  it.each([
    [200, "delivered"],
    [204, "delivered"],
    [302, "refused"],
    [400, "refused"],
    [410, "gone"],
    [429, "throttled"],
    [500, "refused"],
    [503, "throttled"],
  ] as const)("%i means %s", (status, result) => {
    expect(resultOf({ kind: "status", status, retryAfterMs: null })).toBe(result);
  });

  it("means silence without a status", () => {
    expect(resultOf({ kind: "silence", reason: "no connection" })).toBe("silent");
  });

  it("may ask for a pause, of an hour at most", () => {
    const asking = (ms: number) => ({ kind: "status", status: 429, retryAfterMs: ms }) as const;
    expect(pauseMs(asking(60_000), 1, 0)).toBe(60_000);
    expect(pauseMs(asking(10 * LONGEST_PAUSE_MS), 1, 0)).toBe(LONGEST_PAUSE_MS);
    expect(pauseMs(asking(0), 1, 0)).toBe(500);
    expect(pauseMs(asking(0), 60, 0.999)).toBeLessThanOrEqual(LONGEST_PAUSE_MS);
  });

  it.each([
    ["120", 120_000],
    [" 0 ", 0],
    ["Mon, 02 Nov 2026 09:31:00 GMT", 60_000],
    ["Mon, 02 Nov 2020 09:31:00 GMT", 0],
    ["soon", null],
    ["-5", null],
    ["1e9999999999", null],
    [null, null],
  ] as const)("reads Retry-After %j as %j", (header, ms) => {
    expect(retryAfterMs(header, new Date("2026-11-02T09:30:00.000Z"))).toBe(ms);
  });
});

describe("the pace of a receiver", () => {
  it("begins with one request, and grows with deliveries up to a limit", () => {
    expect(mayTry(FRESH, 0, 0)).toBe(true);
    expect(mayTry(FRESH, 1, 0)).toBe(false);
    let pace = FRESH;
    for (let count = 0; count < 2 * MOST_AT_ONCE; count++) pace = afterDelivery(pace);
    expect(pace.limit).toBe(MOST_AT_ONCE);
  });

  it("is one request at a time after a failure, without a pause for other lanes", () => {
    const pace = afterFailure(afterDelivery(FRESH), failed("a"));
    expect(pace.limit).toBe(1);
    expect(isDown(pace)).toBe(false);
    expect(mayTry(pace, 0, 0)).toBe(true);
    expect(isDown(afterFailure(afterFailure(pace, failed("a")), failed("a")))).toBe(false);
  });

  // protects [Webhooks] src/domain/webhooks/receiver-pace.ts
  it("is seldom once several lanes fail in a row, until one delivery succeeds", () => {
    let pace = FRESH;
    for (const lane of ["a", "b", "c"]) pace = afterFailure(pace, failed(lane));
    expect(isDown(pace)).toBe(true);
    expect(mayTry(pace, 0, 99)).toBe(false);
    expect(mayTry(pace, 0, 100)).toBe(true);
    // A request that was under way already counts as the same failure.
    expect(afterFailure(pace, failed("d", { nowMs: 50 })).failures).toBe(1);
    expect(afterFailure(pace, failed("d", { nowMs: 100 })).failures).toBe(2);
    expect(isDown(afterDelivery(pace))).toBe(false);
  });

  it("waits for all lanes if the receiver asks for fewer requests, or an event of the feed fails", () => {
    expect(mayTry(afterFailure(FRESH, failed("a", { throttled: true })), 0, 50)).toBe(false);
    expect(mayTry(afterFailure(FRESH, failed(null)), 0, 50)).toBe(false);
  });
});
