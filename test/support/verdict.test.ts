import { describe, expect, it } from "vitest";
import { noVerdict } from "./verdict.ts";

describe("a failed test on real time", () => {
  it("proves nothing if its process waited most of the time for a processor", () => {
    expect(noVerdict({ elapsed: 4_000, waited: 2_600 })).toBe(
      "no verdict: this process waited 2.6 of 4.0 s for a processor",
    );
  });

  it("counts if its process had a processor at least half of the time", () => {
    expect(noVerdict({ elapsed: 4_000, waited: 2_000 })).toBeNull();
    expect(noVerdict({ elapsed: 0, waited: 0 })).toBeNull();
  });
});
