import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { screenOf } from "../../src/main/process-output.ts";
import { ROOT } from "../architecture/tree.ts";

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

describe("the output of a process", () => {
  it("does not end it if standard error cannot be written, as on a full disk", () => {
    // Opened for reading only: every write fails, on every platform.
    const descriptor = openSync(fileURLToPath(import.meta.url), "r");
    const script = `
      import { createJiti } from "jiti";
      const { createOutput } = await createJiti(process.cwd()).import("./src/main/process-output.ts");
      const output = createOutput({ variables: {} });
      output.say("a line");
      output.stderr("another line");
      setTimeout(() => output.stdout("alive"), 10);
    `;
    const argv = ["--input-type=module", "-e", script];
    const stdio = ["ignore", "pipe", descriptor] as const;
    const { status, stdout } = spawnSync(process.execPath, argv, { cwd: ROOT, stdio: [...stdio], encoding: "utf8" });
    closeSync(descriptor);
    expect({ status, stdout }).toEqual({ status: 0, stdout: "alive" });
  });
});
