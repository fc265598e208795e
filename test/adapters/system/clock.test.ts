import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { clockContract } from "../../contracts/clock.contract.ts";

clockContract("system", () => ({ clock: systemClock, drive: async () => undefined }));

describe("the system clock", () => {
  it("reads the process's monotonic clock, not the wall clock", () => {
    expect(Math.abs(systemClock.monotonicMs() - performance.now())).toBeLessThan(1000);
    expect(Math.abs(systemClock.now().getTime() - Date.now())).toBeLessThan(1000);
  });
});
