import { describe, expect, it } from "vitest";
import { ReadBudget } from "../../../../src/adapters/http/rpc/read-budget.ts";

const MIB = 1024 * 1024;
const room = () => new ReadBudget();
const large = { reads: 0, bytes: 8 * MIB };

/** How many of so many came in. */
function enter(into: ReadBudget, key: string | null, times: number): number {
  return Array.from({ length: times }, () => into.reserve(key, large)).filter((leave) => leave !== null).length;
}

describe("room for reads that wait", () => {
  it("is all for one key where no other wants any", () => {
    expect(enter(room(), "busy", 20)).toBe(12);
  });

  it("is had by a key that comes to a full one, up to an equal share", () => {
    const full = room();
    enter(full, "busy", 20);
    expect(enter(full, "calm", 20)).toBe(6);
    expect(enter(full, null, 20)).toBe(4);
    expect(enter(full, "busy", 1)).toBe(0);
  });

  it("is had at most twice over, however many keys come", () => {
    const full = room();
    enter(full, "busy", 12);
    const others = Array.from({ length: 12 }, (_, at) => enter(full, `key-${at}`, 12));
    expect(others.reduce((sum, each) => sum + each, 12)).toBe(24);
  });

  it("is taken up by many small ones as well", () => {
    const full = room();
    expect(full.reserve("busy", { reads: 12_288, bytes: 0 })).not.toBeNull();
    expect(full.reserve("busy", { reads: 1, bytes: 50 })).toBeNull();
  });

  it("is free again when they have left", () => {
    const full = room();
    const leaving = Array.from({ length: 12 }, () => full.reserve("busy", large));
    expect(enter(full, "busy", 1)).toBe(0);
    leaving[0]?.();
    expect(enter(full, "busy", 2)).toBe(1);
    for (const leave of leaving.slice(1)) leave?.();
    expect(enter(full, "busy", 20)).toBe(11);
  });
});
