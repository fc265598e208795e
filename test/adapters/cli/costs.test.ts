import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Completion, Costs, FencepostClient } from "../../../src/client/index.ts";
import { FencepostApiError } from "../../../src/client/index.ts";
import { runCommand } from "../../support/command.ts";

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

const COSTS: Costs = {
  by: "signer",
  from: "2026-01-01T00:00:00.000Z",
  to: "2026-01-02T00:00:00.000Z",
  items: [
    {
      ...{
        group: SIGNER,
        name: "payouts-1",
        chainId: 1,
        transactions: 4,
        confirmed: 2,
        failed: 1,
        failedShare: 0.3333,
      },
      ...{ fees: "1500000000000000000", failedFees: "7", value: "2000000000000000000" },
    },
    {
      ...{ group: null, chainId: 1, transactions: 1, confirmed: 1, failed: 0, failedShare: 0 },
      ...{ fees: "1", failedFees: "0", value: "0" },
    },
  ],
  next: null,
};

const asking = (client: Partial<FencepostClient>) => ({ connect: async () => client as FencepostClient });

describe("fencepost costs", () => {
  it("prints a table in ether, with names and the failed share", async () => {
    const asked: unknown[] = [];
    const costs = async (query: unknown) => {
      asked.push(query);
      return COSTS;
    };
    const argv = ["costs", "--by", "signer", "--from", "2026-01-01", "--to", "2026-01-02T00:00:00Z", "--chain-id", "1"];
    const { code, stdout } = await runCommand(argv, { actions: asking({ costs: costs as FencepostClient["costs"] }) });
    expect(code).toBe(0);
    expect(asked).toEqual([{ by: "signer", from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z", chainId: 1 }]);
    expect(stdout).toMatch(new RegExp(`^${SIGNER} +payouts-1 +1 +4 `, "m"));
    expect(stdout).toContain("1.5 ether");
    expect(stdout).toContain("1 (33.3 %)");
  });

  it("has no column of names if nothing has one", async () => {
    const items = COSTS.items.map(({ name, ...cost }) => cost);
    const { stdout } = await runCommand(["costs"], { actions: asking({ costs: async () => ({ ...COSTS, items }) }) });
    expect(stdout.split("\n")[0]).toMatch(/^signer +chain +transactions/);
  });

  it("prints CSV with exact amounts in wei, and JSON", async () => {
    const actions = asking({ costs: async () => COSTS });
    expect((await runCommand(["costs", "--csv"], { actions })).stdout).toBe(
      [
        "group,name,chainId,transactions,confirmed,failed,failedShare,fees,failedFees,value",
        `${SIGNER},payouts-1,1,4,2,1,0.3333,1500000000000000000,7,2000000000000000000`,
        ",,1,1,1,0,0,1,0,0",
        "",
      ].join("\n"),
    );
    expect(JSON.parse((await runCommand(["costs", "--json"], { actions })).stdout)).toEqual(COSTS);
  });

  it.each([["yesterday"], ["2026-13-01"], ["2026-01-01T00:00:00"]])("refuses the time %s", async (time) => {
    const { code, stderr } = await runCommand(["costs", "--from", time]);
    expect(code).toBe(2);
    expect(stderr).toContain("2026-01-31T12:00:00Z");
  });
});

describe("fencepost export", () => {
  let directory: string;
  let file: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "fencepost-export-"));
    file = join(directory, "out.csv");
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const completion = (seq: number): Completion => ({
    ...{ seq, epoch: 1, txId: `t${seq}`, chainId: 1, signer: SIGNER, requestId: `a "b", ${seq}`, nonce: seq },
    ...{ state: "CONFIRMED", subState: null, settled: true, txHash: null, at: "2026-01-01T00:00:00.000Z" },
    cost:
      seq === 2
        ? null
        : { createdAt: "2026-01-01T00:00:00.000Z", owner: "shop", receiver: null, fees: "21", value: "5" },
  });

  /** A feed with completions 1 to `last`, two on a page; the first `truncated` are no longer kept. */
  const feedOf = (last: number, truncated = 0): FencepostClient["completionsPage"] => {
    return async ({ after = 0, epoch = 1, include } = {}) => {
      expect([include, epoch]).toEqual(["cost", 1]);
      if (after < truncated) {
        const failure = { code: "FEED_TRUNCATED", status: 410, detail: "no longer kept" } as const;
        const problem = { ...failure, type: "", title: "", resumeAfter: truncated };
        throw new FencepostApiError(failure, { problem });
      }
      const items = [after + 1, after + 2].filter((seq) => seq <= last).map(completion);
      return { epoch: 1, items, next: items.at(-1)?.seq ?? after };
    };
  };
  const exporting = (argv: readonly string[], completionsPage: FencepostClient["completionsPage"]) =>
    runCommand(["export", ...argv], { actions: asking({ completionsPage }), looks: 100 });

  it("prints every completion with its cost as a line of JSON, and the position on standard error", async () => {
    const { stdout, stderr, code } = await exporting([], feedOf(5));
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
    expect(rows[0]).toMatchObject({ txId: "t1", owner: "shop", fees: "21", value: "5" });
    expect(rows[1]).toMatchObject({ txId: "t2", owner: null, fees: null });
    expect(stderr).toBe("next: --after 5 --epoch 1\n");
    expect(code).toBe(0);
  });

  it("continues a file where it ended, with one headline, and repeats nothing", async () => {
    const argv = ["--format", "csv", "--to", file];
    await exporting(argv, feedOf(3));
    await exporting(argv, feedOf(3));
    await exporting(argv, feedOf(4));
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    expect(lines[0]?.startsWith("seq,epoch,at,state")).toBe(true);
    expect(lines.slice(1).map((line) => Number(line.split(",")[0]))).toEqual([1, 2, 3, 4]);
    expect(lines[1]).toContain('"a ""b"", 1"');
  });

  // protects [Figures] src/main/remote/export-file.ts
  it("cuts off rows that a crashed export wrote and did not note", async () => {
    const argv = ["--to", file];
    await exporting(argv, feedOf(2));
    const whole = await readFile(file, "utf8");
    await writeFile(file, `${whole}{"seq":3,"half`);
    await exporting(argv, feedOf(3));
    const rows = (await readFile(file, "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  // protects [Figures] src/main/remote/export-file.ts
  it("overwrites no file that it did not write, and pads none that was shortened", async () => {
    await writeFile(file, "precious\n");
    const refused = await exporting(["--to", file], feedOf(2));
    expect(refused.code).toBe(2);
    expect(await readFile(file, "utf8")).toBe("precious\n");
    await rm(file);
    await exporting(["--to", file], feedOf(2));
    await writeFile(file, "short");
    expect((await exporting(["--to", file], feedOf(3))).code).toBe(2);
    expect(await readFile(file, "utf8")).toBe("short");
    await writeFile(`${file}.position`, "rubbish");
    expect((await exporting(["--to", file], feedOf(3))).stderr).toContain("is not a position");
  });

  it("begins after what retention removed, but never skips it silently once it has begun", async () => {
    const { stdout, stderr } = await exporting([], feedOf(5, 3));
    expect(stdout.trimEnd().split("\n")).toHaveLength(2);
    expect(stderr).toContain("completions up to 3 are no longer kept");
    const gap = await exporting(["--after", "1"], feedOf(5, 3));
    expect(gap.code).not.toBe(0);
    expect(gap.stdout).toBe("");
  });
});
