import { describe, expect, it } from "vitest";
import { entropyContract } from "../contracts/entropy.contract.ts";
import { createManualClock } from "./manual-clock.ts";
import { createSeededEntropy } from "./seeded-entropy.ts";

entropyContract("seeded", () => createSeededEntropy(42));
entropyContract("seeded, on a manual clock", () => createSeededEntropy(7, createManualClock()));

describe("seeded entropy", () => {
  const draw = (seed: number) => {
    const entropy = createSeededEntropy(seed, createManualClock());
    return Array.from({ length: 50 }, () => [entropy.uuid(), entropy.random()]);
  };

  it("repeats its values for the same seed", () => {
    expect(draw(1)).toEqual(draw(1));
  });

  it("returns different values for neighbouring seeds", () => {
    const firsts = Array.from({ length: 200 }, (_, seed) => JSON.stringify(draw(seed)[0]));
    expect(new Set(firsts).size).toBe(200);
  });

  it("returns the same jitter for any number of ids drawn in between", () => {
    const few = createSeededEntropy(3);
    const many = createSeededEntropy(3);
    for (let i = 0; i < 10; i++) many.uuid();
    expect(many.random()).toBe(few.random());
  });
});
