import { describe, expect, it } from "vitest";
import { parseValidUntil } from "../../../src/application/requests/normalise.ts";
import { FencepostError } from "../../../src/domain/errors.ts";

const clock = { now: () => new Date("2026-11-02T09:30:00Z") };
const A_DAY_MS = 86_400_000;

function refusalOf(value: unknown): FencepostError {
  try {
    parseValidUntil(value, clock);
  } catch (error) {
    if (error instanceof FencepostError) return error;
  }
  throw new Error("it was accepted");
}

describe("the validUntil field of a request", () => {
  it.each([
    ["2026-11-02T09:45:00Z", "2026-11-02T09:45:00.000Z"],
    ["2026-11-02T09:45Z", "2026-11-02T09:45:00.000Z"],
    ["2026-11-02T10:45:00.5+01:00", "2026-11-02T09:45:00.500Z"],
    ["2026-11-02T09:45:00.123456789Z", "2026-11-02T09:45:00.123Z"],
    ["2028-02-29T00:00:00-11:30", null],
    [new Date("2026-11-02T09:45:00Z"), "2026-11-02T09:45:00.000Z"],
  ])("must be at most 366 days ahead, in any notation with a UTC offset: %s", (value, instant) => {
    if (instant === null) expect(refusalOf(value).message).toMatch(/at most 366 days ahead/);
    else expect(parseValidUntil(value, clock)?.toISOString()).toBe(instant);
  });

  it.each([undefined, null])("is treated as absent if it is %s", (value) => {
    expect(parseValidUntil(value, clock)).toBeUndefined();
  });

  it.each([
    "10m",
    "tomorrow",
    "2026-11-02",
    "2026-11-02T09:45:00",
    "2026-13-02T09:45:00Z",
    "2026-02-30T09:45:00Z",
    "2026-11-02T25:00:00Z",
    " 2026-11-02T09:45:00Z",
    "+2026-11-02T09:45:00Z",
    1_793_612_700,
    1_793_612_700_000,
    "",
    {},
    [],
    true,
    new Date(Number.NaN),
  ])("is refused with the expected format if it is %s", (value) => {
    const refusal = refusalOf(value);
    expect(refusal).toMatchObject({ code: "INVALID_REQUEST", extras: { path: "validUntil" } });
    expect(refusal.message).toMatch(/must be an instant as in ISO 8601, with its offset/);
  });

  it("may be in the past, so that a repeated request still finds its transaction", () => {
    expect(parseValidUntil("2020-01-01T00:00:00Z", clock)).toEqual(new Date("2020-01-01T00:00:00Z"));
  });

  it("may be at most a year (366 days) ahead", () => {
    const at = (ms: number) => new Date(clock.now().getTime() + ms).toISOString();
    expect(parseValidUntil(at(366 * A_DAY_MS), clock)).toBeInstanceOf(Date);
    expect(refusalOf(at(366 * A_DAY_MS + 1)).message).toMatch(/366 days/);
  });
});
