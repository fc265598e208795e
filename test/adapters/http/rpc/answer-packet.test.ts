import { describe, expect, it } from "vitest";
import { readBudget } from "../../../../src/adapters/http/rpc/answer-packet.ts";

const MIB = 1024 * 1024;
const large = { reads: 0, bytes: 8 * MIB };

/** Requests `times` reads of 8 MiB from the memory budget. Returns how many it admits. */
function enter(into: ReturnType<typeof readBudget>, key: string | null, times: number): number {
  return Array.from({ length: times }, () => into(key, large)).filter((leave) => leave !== null).length;
}

describe("the memory budget of JSON-RPC reads that wait for a response", () => {
  it("can be used completely by one API key", () => {
    expect(enter(readBudget(), "busy", 20)).toBe(12);
  });

  // protects [Attacks] src/adapters/http/rpc/answer-packet.ts
  it("has an equal share for each new API key", () => {
    const full = readBudget();
    enter(full, "busy", 20);
    expect(enter(full, "calm", 20)).toBe(6);
    expect(enter(full, null, 20)).toBe(4);
    expect(enter(full, "busy", 1)).toBe(0);
  });

  // protects [Attacks] src/adapters/http/rpc/answer-packet.ts
  it("is exceeded at most twofold", () => {
    const full = readBudget();
    enter(full, "busy", 12);
    const others = Array.from({ length: 12 }, (_, at) => enter(full, `key-${at}`, 12));
    expect(others.reduce((sum, each) => sum + each, 12)).toBe(24);
  });

  it("can also be used up by many small reads", () => {
    const full = readBudget();
    expect(full("busy", { reads: 12_288, bytes: 0 })).not.toBeNull();
    expect(full("busy", { reads: 1, bytes: 50 })).toBeNull();
  });

  it("is released when the reads are answered", () => {
    const full = readBudget();
    const leaving = Array.from({ length: 12 }, () => full("busy", large));
    expect(enter(full, "busy", 1)).toBe(0);
    leaving[0]?.();
    expect(enter(full, "busy", 2)).toBe(1);
    for (const leave of leaving.slice(1)) leave?.();
    expect(enter(full, "busy", 20)).toBe(11);
  });
});
