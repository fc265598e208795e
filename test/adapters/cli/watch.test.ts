import { describe, expect, it } from "vitest";
import type { FencepostClient, OutcomesQuery, Transaction } from "../../../src/client/index.ts";
import { type CommandWorld, runCommand } from "../../support/command.ts";
import * as examples from "../../support/sample-answers.ts";

const open = (n: number, over: Partial<Transaction> = {}): Transaction => ({
  ...examples.transaction,
  txId: `tx-${n}`,
  nonce: n,
  state: "TRACKING",
  subState: "PENDING",
  createdAt: "2025-12-31T23:59:50.000Z",
  ...over,
});

/** Runs the command `watch`. `looks`: the list of open transactions that the fake node returns at each poll. */
async function watch(argv: readonly string[], looks: readonly (readonly Transaction[])[], world: CommandWorld = {}) {
  let look = -1;
  const client: Partial<FencepostClient> = {
    list: async ({ state } = {}) => {
      if (state === "STUCK") look++;
      return { items: (looks[look] ?? []).filter((each) => each.state === state), next: null };
    },
    get: async (txId) => open(0, { txId, state: "CONFIRMED", subState: null }),
  };
  const actions = { connect: async () => client as FencepostClient };
  return runCommand(["watch", ...argv], { ...world, actions, looks: looks.length - 1 });
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what moves a cursor, or colours it.
const ESCAPES = /\u001b\[[0-9;]*[A-Za-z]/g;
const SCREEN = { columns: 120, rows: 7, colours: false };

describe("fencepost watch", () => {
  it("prints a line for each state change if the output is not a terminal", async () => {
    const { stdout, code } = await watch(
      [],
      [[open(1), open(2)], [open(1), open(2, { state: "STUCK", subState: null })], []],
    );
    expect(code).toBe(0);
    const printed = stdout
      .trimEnd()
      .split("\n")
      .map((line) =>
        line
          .split(/ {2}/)
          .filter((_, at) => at === 1 || at === 3)
          .join(" "),
      );
    expect(printed).toEqual([
      expect.stringMatching(/^TRACKING\/PENDING tx-1/),
      expect.stringMatching(/^TRACKING\/PENDING tx-2/),
      expect.stringMatching(/^STUCK tx-2/),
      expect.stringMatching(/^CONFIRMED tx-2/),
      expect.stringMatching(/^CONFIRMED tx-1/),
    ]);
    expect(stdout).not.toContain("\u001b");
  });

  it("prints one JSON value per line with --json, also on a terminal", async () => {
    const { stdout } = await watch(["--json"], [[open(1)], []], { screen: SCREEN });
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { txId: "tx-1", state: "TRACKING" },
      { txId: "tx-1", state: "CONFIRMED" },
    ]);
  });

  it("shows a table limited to the height of the terminal", async () => {
    const many = [1, 2, 3, 4].map((n) => open(n));
    const { stdout } = await watch([], [many, []], { screen: SCREEN });
    const [, first = "", second = ""] = stdout.split("\u001b[H");
    expect(first).toContain("4 not final");
    expect(first).toMatch(/^10 s ago +TRACKING\/PENDING/m);
    expect(first).toContain("… and 2 more");
    expect(first.split("\n").length).toBeLessThanOrEqual(SCREEN.rows);
    const narrow = await watch([], [many], { screen: { ...SCREEN, columns: 40, colours: true } });
    const widths = narrow.stdout
      .split("\n")
      .slice(2)
      .map((line) => line.replace(ESCAPES, "").length);
    expect(Math.max(...widths)).toBeLessThanOrEqual(40);
    expect(second).toContain("nothing: everything is final");
  });

  it("prints the open transactions once and exits with --once", async () => {
    expect((await watch(["--once"], [[]])).stdout).toBe("nothing: everything is final\n");
  });

  it("refuses an invalid interval", async () => {
    expect((await watch(["--interval", "soon"], [])).code).toBe(2);
  });
});

describe("fencepost completions", () => {
  const item = examples.feedPage.items[0] as (typeof examples.feedPage.items)[number];

  async function follow(argv: readonly string[], looks: number) {
    const asked: OutcomesQuery[] = [];
    const client: Partial<FencepostClient> = {
      completionsPage: async ({ after = 0 } = {}) => ({
        epoch: 3,
        items: [{ ...item, seq: after + 1 }],
        next: after + 1,
      }),
      async *outcomes(query = {}) {
        asked.push(query);
        for (let seq = (query.after ?? 0) + 1; ; seq++) yield { ...item, seq, feedEpoch: 3 };
      },
    };
    const actions = { connect: async () => client as FencepostClient };
    return { ...(await runCommand(["completions", ...argv], { actions, looks })), asked };
  }

  it("with --follow prints outcomes from the last position on", async () => {
    const { stdout, asked } = await follow(["--follow", "--after", "7", "--json"], 3);
    expect(asked).toEqual([{ after: 7 }]);
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([{ seq: 8, feedEpoch: 3 }, { seq: 9 }, { seq: 10 }]);
  });

  it("with --follow ends when nobody reads its output, also while it waits", async () => {
    const left = new AbortController();
    const client: Partial<FencepostClient> = {
      async *outcomes(_, { signal } = {}) {
        yield { ...item, feedEpoch: 3 };
        left.abort();
        signal?.throwIfAborted();
      },
    };
    const actions = { connect: async () => client as FencepostClient };
    const ended = await runCommand(["completions", "--follow"], { actions, looks: 9, left: left.signal });
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(ended.stdout.split("\n")).toHaveLength(2);
  });

  it("prints one line per completion, and how to get the next page", async () => {
    expect((await follow(["--follow"], 2)).stdout.split("\n")).toHaveLength(3);
    expect((await follow([], 1)).stdout).toContain("next: --after 1 --epoch 3\n");
  });
});
