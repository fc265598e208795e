import { describe, expect, it } from "vitest";
import { isThrough, looked, type Search } from "../../../src/domain/pace/lane-pace.ts";

const TTL_MS = 1_000;

/**
 * State of a search after these reads of the chain. Each read has a time, and tells whether it found a transaction of
 * the caller.
 */
function searched(...looks: readonly (readonly [atMs: number, found: boolean])[]): Search | undefined {
  return looks.reduce<Search | undefined>((search, [atMs, found]) => looked(search, found, atMs), undefined);
}

describe("the search for a transaction of an expired reservation", () => {
  it.each<[string, Search | undefined, boolean]>([
    ["no check", searched(), false],
    ["one check that found nothing", searched([5_000, false]), false],
    ["two checks, not far enough apart", searched([0, false], [999, false]), false],
    ["two checks as far apart as the reservation lasted", searched([0, false], [1_000, false]), true],
    ["checks during the whole time", searched([0, false], [500, false], [1_100, false]), true],
    ["a transaction found in between", searched([0, false], [500, true], [1_100, false]), false],
    ["a transaction found last", searched([0, false], [1_000, false], [1_100, true]), false],
    [
      "the whole time again after one was found",
      searched([0, true], [100, false], [1_099, false], [1_100, false]),
      true,
    ],
    // protects [Reservations] src/domain/pace/lane-pace.ts, src/application/detours/holes.ts
  ])("ends only after finding nothing for the reservation's duration: %s", (_, search, through) => {
    expect(isThrough(search, TTL_MS)).toBe(through);
  });
});
