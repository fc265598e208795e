import { describe, expect, it } from "vitest";
import { limitsFor } from "../../../../src/adapters/postgres/session/limits.ts";

describe.each([3_000, 10_000, 60_000])("transaction timeouts for a lease of %i ms", (leaseMs) => {
  it.each([150_000, 160_000])("add up to less than a third of the lease on server version %i", (version) => {
    const limits = limitsFor(leaseMs, version);
    for (const [waits, reads, writes] of [
      [1, 0, 1],
      [1, 6, 14],
      [3, 2, 4],
    ] as const) {
      const waiting = limits.waiting(waits).statementMs * waits;
      const reading = (limits.reading(reads)?.statementMs ?? Number.NaN) * reads;
      const writing = limits.writing(writes).statementMs * writes;
      expect(waiting + reading + limits.idleMs + writing).toBeLessThan(leaseMs / 3);
    }
  });

  it.each([170_000, 180_000])("are one limit for the whole transaction on server version %i", (version) => {
    const limits = limitsFor(leaseMs, version);
    expect(limits.transactionMs).toBeLessThan(leaseMs / 3);
    expect(limits.reading(5)).toBeNull();
    expect(limits.waiting(3)).toEqual(limits.waiting(1));
  });

  it.each([150_000, 180_000])("allow a longer wait for a lock than the idle limit on server version %i", (version) => {
    const limits = limitsFor(leaseMs, version);
    expect(limits.waiting(2).lockMs).toBeGreaterThan(limits.idleMs);
    expect(limits.writing(4).lockMs).toBeLessThanOrEqual(250);
  });
});
