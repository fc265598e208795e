import { describe, expect, it } from "vitest";
import { afterSilence, type Silences, standsBack } from "../../../src/domain/cluster/stand-back.ts";

const LEASE = 10_000;

/** Time in ms for which a node claims no lanes after the last of these stalls. */
function heldBackMs(...atMs: readonly number[]): number {
  const silences = atMs.reduce<Silences | null>((before, nowMs) => afterSilence(before, nowMs, LEASE), null);
  let ms = 0;
  while (standsBack(silences, (atMs.at(-1) as number) + ms, LEASE)) ms += LEASE;
  return ms;
}

describe("the period without new lanes after missed leases", () => {
  it("is zero for a node that never missed a lease", () => {
    expect(standsBack(null, 0, LEASE)).toBe(false);
  });

  it("is one lease duration after the first missed lease", () => {
    const silences = afterSilence(null, 500, LEASE);
    expect(standsBack(silences, 500 + LEASE - 1, LEASE)).toBe(true);
    expect(standsBack(silences, 500 + LEASE, LEASE)).toBe(false);
  });

  it("doubles with each missed lease, up to thirty-two lease durations", () => {
    const times = Array.from({ length: 12 }, (_, index) => index * 20_000);
    const lasts = times.map((_, index) => heldBackMs(...times.slice(0, index + 1)) / LEASE);
    expect(lasts).toEqual([1, 2, 4, 8, 16, 32, 32, 32, 32, 32, 32, 32]);
  });

  it("is reset if the node misses no lease for sixty-four lease durations", () => {
    const last = 20_000;
    expect(heldBackMs(0, last, last + 64 * LEASE - 1)).toBe(4 * LEASE);
    expect(heldBackMs(0, last, last + 64 * LEASE)).toBe(LEASE);
  });
});
