import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { createEntropy, createUuidSequence } from "../../../src/adapters/system/entropy.ts";
import { entropyContract } from "../../contracts/entropy.contract.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";

entropyContract("system", () => createEntropy(systemClock));
entropyContract("system, wall clock standing still", () => createEntropy(createManualClock()));

describe("the UUID sequence", () => {
  it("ascends strictly even if the wall clock jumps forwards or backwards", () => {
    const steps = fc.array(
      fc.record({ jump: fc.integer({ min: -5000, max: 5000 }), ids: fc.integer({ min: 1, max: 40 }) }),
      {
        maxLength: 40,
      },
    );
    fc.assert(
      fc.property(steps, fc.integer({ min: 0, max: 255 }), (walk, fill) => {
        let ms = 1_800_000_000_000;
        const next = createUuidSequence(
          () => ms,
          (bytes) => bytes.fill(fill),
        );
        let last = "";
        for (const { jump, ids } of walk) {
          ms += jump;
          for (let i = 0; i < ids; i++) {
            const id = next();
            expect(id > last).toBe(true);
            last = id;
          }
        }
      }),
    );
  });

  it("uses the next millisecond when the counter overflows", () => {
    const next = createUuidSequence(
      () => 1_800_000_000_000,
      (bytes) => bytes.fill(0xff),
    );
    const ids = Array.from({ length: 3 * 4096 }, next);
    expect([...ids].sort()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
    expect(Number.parseInt(ids.at(-1)?.replaceAll("-", "").slice(0, 12) ?? "", 16)).toBe(1_800_000_000_003);
  });

  it("has the exact bit layout of RFC 9562", () => {
    const next = createUuidSequence(
      () => 0x017f22e279b0,
      (bytes) => bytes.set([0, 0, 0, 0, 0, 0, 0x04, 0xc3, 0x98, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f]),
    );
    expect(next()).toBe("017f22e2-79b0-74c3-98c4-dc0c0c07398f");
  });
});
