import { access } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { GROUPS } from "../../src/contract/calls/index.ts";
import { DRAWN, PLACES } from "../support/simulation/places.ts";

const declared = GROUPS.flatMap(([, calls]) => Object.keys(calls));
const places = Object.entries(PLACES);
const without = places.flatMap(([id, place]) => (typeof place === "string" ? [] : [[id, place.because] as const]));

describe("a declared call", () => {
  it("has a place in the simulation, or a reason why it cannot have one", () => {
    expect(Object.keys(PLACES).sort()).toEqual([...declared].sort());
  });

  it("is made by an actor that exists", async () => {
    for (const [id, place] of places) {
      if (typeof place !== "string") continue;
      const file = fileURLToPath(new URL(`../support/simulation/${place}.ts`, import.meta.url));
      await expect(access(file), `${place} of ${id}`).resolves.toBeUndefined();
    }
  });

  it("is counted under a name of its own", () => {
    expect([...DRAWN.values()].filter((name) => name === "call: ")).toEqual([]);
    expect(new Set(DRAWN.values()).size).toBe(DRAWN.size);
  });

  it("is left out of the simulation only rarely, with a reason", () => {
    for (const [id, because] of without) expect(because.length, id).toBeGreaterThan(30);
    expect(without.length).toBeLessThanOrEqual(8);
  });
});
