import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Address, compareLanes, type Lane, laneKey, shardOf } from "../../src/domain/lane.ts";

const addresses = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map((bytes): Address => `0x${Buffer.from(bytes).toString("hex")}`);
const lanes: fc.Arbitrary<Lane> = fc.record({
  chainId: fc.oneof(fc.constantFrom(1, 2, 9, 10), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
  signer: fc.oneof(fc.constantFrom<Address>(`0x${"0".repeat(40)}`, `0x${"f".repeat(40)}`), addresses),
});

describe("the sort order of lanes", () => {
  it("is by chain id as a number, then by signer", () => {
    const a: Address = `0x${"a".repeat(40)}`;
    const b: Address = `0x${"b".repeat(40)}`;
    const sorted = [
      { chainId: 2, signer: a },
      { chainId: 9, signer: a },
      { chainId: 10, signer: a },
      { chainId: 10, signer: b },
    ];
    expect([...sorted].reverse().sort(compareLanes)).toEqual(sorted);
  });

  it("is total, so transactions that lock lanes in this order cannot deadlock", () => {
    fc.assert(
      fc.property(lanes, lanes, lanes, (a, b, c) => {
        expect(Math.sign(compareLanes(a, b)) + Math.sign(compareLanes(b, a))).toBe(0);
        expect(compareLanes(a, b) === 0).toBe(laneKey(a) === laneKey(b));
        if (compareLanes(a, b) <= 0 && compareLanes(b, c) <= 0) expect(compareLanes(a, c)).toBeLessThanOrEqual(0);
      }),
    );
  });
});

describe("writer shards", () => {
  it("are stable and in range for any number of shards", () => {
    fc.assert(
      fc.property(lanes, fc.integer({ min: 1, max: 10_000 }), (lane, shards) => {
        const shard = shardOf(laneKey(lane), shards);
        expect(Number.isInteger(shard) && shard >= 0 && shard < shards).toBe(true);
        expect(shardOf(laneKey({ ...lane }), shards)).toBe(shard);
      }),
    );
  });

  it("spread neighbouring lanes: no shard gets more than twice its share", () => {
    const counts = new Map<number, number>();
    for (let n = 0; n < 16_000; n++) {
      const shard = shardOf(laneKey({ chainId: 1, signer: `0x${n.toString(16).padStart(40, "0")}` }), 16);
      counts.set(shard, (counts.get(shard) ?? 0) + 1);
    }
    expect(counts.size).toBe(16);
    for (const count of counts.values()) expect(count).toBeLessThan(2_000);
  });

  it("differ between the chains of one signer", () => {
    const signer: Address = `0x${"a".repeat(40)}`;
    const shards = [1, 10, 137, 8453, 42161].map((chainId) => shardOf(laneKey({ chainId, signer }), 256));
    expect(new Set(shards).size).toBeGreaterThan(1);
  });

  it("are chosen by the published FNV-1a hash", () => {
    expect(shardOf("", 2 ** 32)).toBe(0x811c9dc5);
    expect(shardOf("a", 2 ** 32)).toBe(0xe40c292c);
    expect(shardOf("foobar", 2 ** 32)).toBe(0xbf9cf968);
  });
});
