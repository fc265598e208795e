/** Runs `fencepost chaos` from the command line, behind PgBouncer where it is installed. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ChaosReport } from "../../../src/adapters/cli/diagnose.ts";
import { spawnFencepost } from "../../support/node-process.ts";
import { pgbouncerPath } from "../../support/pgbouncer.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

const LEAST_FAULTS = 20;
const LEAST_ACCEPTED = 100;

describe("fencepost chaos", () => {
  it("keeps every invariant while faults strike nodes, wires, endpoints, database and chain", {
    timeout: 600_000,
  }, async () => {
    const output = await makeTemporaryDirectory();
    onTestFinished(output.remove);
    const pooler = pgbouncerPath === undefined ? [] : ["--pooler", pgbouncerPath];
    const child = spawnFencepost(["chaos", "--minutes", "1", "--output", output.path, ...pooler, "--json"]);
    const { code } = await child.exited;
    const report = JSON.parse(child.stdout()) as ChaosReport;
    expect(report.violations, child.stderr()).toEqual([]);
    expect(code).toBe(0);
    expect(report.faults).toBeGreaterThan(LEAST_FAULTS);
    expect(report.accepted).toBeGreaterThan(LEAST_ACCEPTED);
    expect(await readFile(join(output.path, "timeline.svg"), "utf8")).toContain("</svg>");
    const history = (await readFile(join(output.path, "history.jsonl"), "utf8")).trim().split("\n");
    const faults = history.map((line) => JSON.parse(line)).filter(({ kind }) => kind === "fault");
    expect(faults).toHaveLength(report.faults);
  });
});
