import { describe, expect, it } from "vitest";
import type { Entropy } from "../../src/ports/entropy.ts";

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The contract of every Entropy. `create` must read a wall clock of this century. */
export function entropyContract(name: string, create: () => Entropy): void {
  describe(`Entropy contract: ${name}`, () => {
    it("generates UUIDs of version 7, variant 10", () => {
      const entropy = create();
      for (let i = 0; i < 1000; i++) expect(entropy.uuid()).toMatch(UUID_V7);
    });

    it("never repeats a UUID and only ascends, however fast they are generated", () => {
      const entropy = create();
      const ids = Array.from({ length: 20_000 }, () => entropy.uuid());
      expect(new Set(ids).size).toBe(ids.length);
      expect([...ids].sort()).toEqual(ids);
    });

    it("puts the wall clock into the first 48 bits of a UUID", () => {
      const ms = Number.parseInt(create().uuid().replaceAll("-", "").slice(0, 12), 16);
      expect(new Date(ms).getUTCFullYear()).toBeGreaterThanOrEqual(2026);
      expect(new Date(ms).getUTCFullYear()).toBeLessThan(2100);
    });

    it("fills the last 62 bits of a UUID with random bits", () => {
      const entropy = create();
      const tails = new Set(Array.from({ length: 1000 }, () => entropy.uuid().slice(19)));
      expect(tails.size).toBe(1000);
    });

    it("returns random numbers uniform in [0, 1)", () => {
      const entropy = create();
      const buckets = new Array<number>(10).fill(0);
      for (let i = 0; i < 10_000; i++) {
        const value = entropy.random();
        expect(value).toBeGreaterThanOrEqual(0);
        expect(value).toBeLessThan(1);
        buckets[Math.floor(value * 10)] = (buckets[Math.floor(value * 10)] ?? 0) + 1;
      }
      // Each bucket is expected to have 1,000; 800 is more than six standard deviations away.
      for (const count of buckets) expect(count).toBeGreaterThan(800);
    });
  });
}
