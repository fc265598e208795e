import { describe, expect, it } from "vitest";
import { screenOf } from "../../src/main/process-output.ts";

describe("the screen of a command", () => {
  it("is as wide as its terminal", () => {
    expect(screenOf({ isTTY: true, columns: 132, rows: 50 }, {})).toEqual({ columns: 132, rows: 50, colours: true });
  });

  it("is as wide as COLUMNS, or 80 columns wide, if the terminal reports no width", () => {
    expect(screenOf({ isTTY: true, columns: 0, rows: 0 }, { COLUMNS: "100" })).toMatchObject({
      columns: 100,
      rows: 24,
    });
    expect(screenOf({ isTTY: true }, { COLUMNS: "wide" })).toMatchObject({ columns: 80 });
  });

  it("is none in a script, whatever COLUMNS is: nothing is shortened there", () => {
    expect(screenOf({ isTTY: false }, { COLUMNS: "80" })).toBeNull();
  });
});
