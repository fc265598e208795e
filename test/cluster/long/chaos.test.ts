/** Runs `fencepost chaos` from the command line. */
import { describe, expect, it } from "vitest";
import type { ChaosReport } from "../../../src/adapters/cli/diagnose.ts";
import { spawnFencepost } from "../../support/node-process.ts";

describe("fencepost chaos", () => {
  it("finds no lost or duplicated transaction after killing and freezing nodes", {
    timeout: 300_000,
  }, async () => {
    const child = spawnFencepost(["chaos", "--transactions", "80", "--kills", "4", "--json"]);
    const { code } = await child.exited;
    expect(code, child.stderr()).toBe(0);
    const report = JSON.parse(child.stdout()) as ChaosReport;
    expect(report).toMatchObject({ accepted: 80, confirmed: 80, lost: 0, duplicate: 0, gaps: 0 });
    expect(report).toMatchObject({ kills: 3, restarts: 3, freezes: 1 });
  });
});
