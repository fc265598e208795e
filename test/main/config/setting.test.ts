import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ageOr, formatAge } from "../../../src/main/config/setting.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe("age settings", () => {
  const { parse, fallback, unset } = ageOr("off", HOUR_MS);

  it.each([
    ["90d", 90 * DAY_MS],
    ["3650d", 3_650 * DAY_MS],
    ["36h", 36 * HOUR_MS],
    ["60m", HOUR_MS],
    ["off", null],
  ])("parse %s", (said, value) => {
    expect(parse(said)).toEqual({ value });
  });

  it.each(["", "90", "d", "1.5d", "-1d", "0d", "90 d", "90D", "99999d", "forever", "on", 90, null, true])(
    "refuse %j, with an example of a valid age",
    (said) => {
      expect(parse(said)).toEqual({ mistake: "is not an age (use 90d, 36h, or off)" });
    },
  );

  it("refuse an age that is too short", () => {
    for (const said of ["59m", "10s", "0"])
      expect(parse(said)).toEqual({ mistake: "is too short (at least 1h, or off)" });
  });

  it("are unlimited by default, and parse every formatted age back to the same value", () => {
    expect([fallback, unset]).toEqual([null, "off"]);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 24 * 365 }), (hours) => {
        expect(parse(formatAge(hours * HOUR_MS))).toEqual({ value: hours * HOUR_MS });
      }),
    );
  });
});
