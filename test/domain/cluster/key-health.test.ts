import { describe, expect, it } from "vitest";
import { afterFailure, afterSignature, isAway, type KeyHealth } from "../../../src/domain/cluster/key-health.ts";

const LEASE = 1_000;

/** The health that a node records for a key after signing failures at these times. */
const failedAt = (times: readonly number[], before?: KeyHealth) =>
  times.reduce<KeyHealth | undefined>((health, ms) => afterFailure(health, ms, LEASE), before) as KeyHealth;

describe("a node's key that fails to sign", () => {
  it.each([
    ["two failures, however far apart", [0, 5_000], false],
    ["three within less than a lease", [0, 300, 999], false],
    ["three over a lease", [0, 300, 1_000], true],
    ["many within a lease, and one after it", [0, 10, 20, 30, 40, 1_000], true],
  ])("is marked as unreachable only after three failures over a lease duration: %s", (_, times, away) => {
    expect(isAway(failedAt(times), times.at(-1) as number)).toBe(away);
  });

  it("is no longer marked as unreachable after a successful signature", () => {
    expect(afterSignature(failedAt([0, 500]), 600, LEASE)).toBeUndefined();
    const signed = afterSignature(failedAt([0, 500, 1_000]), 1_100, LEASE) as KeyHealth;
    expect(isAway(signed, 1_100)).toBe(false);
  });

  // protects [Signers] src/domain/cluster/key-health.ts, src/application/cluster/keys-away.ts, src/domain/cluster/placement.ts
  it("is marked as unreachable at most once in ten lease durations", () => {
    const marked = failedAt([0, 500, 1_000]);
    const signed = afterSignature(marked, 1_100, LEASE);
    expect(isAway(failedAt([2_000, 3_000, 4_000, 10_900], signed), 10_900)).toBe(false);
    expect(isAway(failedAt([2_000, 3_000, 4_000, 11_000], signed), 11_000)).toBe(true);
  });

  it("is tried again after intervals that double, up to 640 lease durations", () => {
    let health = failedAt([0, 500, 1_000]);
    let [nowMs, leases] = [1_000, 10];
    for (const _ of [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
      expect(isAway(health, nowMs + leases * LEASE - 1)).toBe(true);
      expect(isAway(health, nowMs + leases * LEASE)).toBe(false);
      const beganMs = nowMs + leases * LEASE;
      health = failedAt([beganMs, beganMs + 500, beganMs + 1_000], health);
      nowMs = beganMs + 1_000;
      leases = Math.min(2 * leases, 640);
    }
  });

  it("stays marked while signing keeps failing", () => {
    const health = failedAt([0, 500, 1_000, 9_000]);
    expect(isAway(health, 18_999)).toBe(true);
    expect(isAway(health, 19_000)).toBe(false);
  });
});
