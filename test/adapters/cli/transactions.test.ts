import { describe, expect, it } from "vitest";
import type { FencepostClient, TransactionListQuery } from "../../../src/client/index.ts";
import { OFFERED_ACTIONS } from "../../../src/domain/troubles/situation.ts";
import { runCommand } from "../../support/command.ts";
import * as examples from "../../support/sample-answers.ts";

const { transaction } = examples;
const HASH = `0x${"AB".repeat(32)}`;
const SCREEN = { columns: 120, rows: 30, colours: true };

async function run(argv: readonly string[], client: Partial<FencepostClient>, world: object = {}) {
  return runCommand(argv, { ...world, actions: { connect: async () => client as FencepostClient } });
}

describe("fencepost tx", () => {
  it("finds a transaction by its id, its hash or the caller's own id", async () => {
    const asked: unknown[] = [];
    const client: Partial<FencepostClient> = {
      get: async (id) => {
        asked.push(id);
        return transaction;
      },
      list: async (query) => {
        asked.push(query);
        return { items: [transaction], next: null };
      },
      getByRequest: async (request) => {
        asked.push(request);
        return transaction;
      },
    };
    const named = ["--signer", transaction.signer, "--request-id", "order-42"];
    for (const argv of [[transaction.txId], [HASH], named]) {
      expect((await run(["tx", ...argv], client)).stdout).toContain(`transaction  ${transaction.txId}\n`);
    }
    expect(asked).toEqual([
      transaction.txId,
      { txHash: HASH, limit: 1 },
      { signer: transaction.signer, requestId: "order-42" },
    ]);
  });

  it("requests the history with --history, also after a search by hash", async () => {
    const asked: unknown[] = [];
    const client: Partial<FencepostClient> = {
      list: async () => ({ items: [transaction], next: null }),
      get: async (id, options) => {
        asked.push([id, options]);
        return transaction;
      },
    };
    await run(["tx", HASH, "--history", "--confirmations"], client);
    expect(asked).toEqual([[transaction.txId, { include: ["history", "confirmations"] }]]);
  });

  it("reports a missing argument, and an unknown hash", async () => {
    const list = async () => ({ items: [], next: null });
    expect(await run(["tx"], {})).toMatchObject({ code: 2, stderr: expect.stringContaining("name a transaction") });
    expect(await run(["tx", "--request-id", "x"], {})).toMatchObject({ code: 2 });
    expect(await run(["tx", HASH], { list })).toMatchObject({ code: 3, stderr: expect.stringContaining(HASH) });
  });

  it("prints the exact fee and the value that moved", async () => {
    const paid = async (changes: object, receipt: object = {}) => {
      const get = async () =>
        ({ ...transaction, ...changes, receipt: { ...transaction.receipt, ...receipt } }) as never;
      const lines = (await run(["tx", "x"], { get })).stdout.split("\n");
      return lines.flatMap((line) => /^(?:fee paid|value moved) +(.*)$/.exec(line)?.[1] ?? []);
    };
    const payload = { ...transaction.payload, value: "1234567890123456789" };
    const [initial] = transaction.attempts;
    const kind = (name: string) => ({ payload, attempts: [{ ...initial, kind: name }] });
    expect(await paid({ payload })).toEqual(["0.000042 ether", "1.234567890123456789 ether"]);
    expect(await paid({ payload }, { besideGas: "1" })).toEqual([
      "0.000042000000000001 ether",
      "1.234567890123456789 ether",
    ]);
    expect(await paid({}, { besideGas: "0", besideGasUnsure: true })).toContainEqual(
      "at least 0.000042 ether: the part beside gas is not known",
    );
    expect(await paid({ payload }, { status: "reverted" })).toEqual(["0.000042 ether", "0 ether"]);
    expect(await paid(kind("cancel"))).toEqual(["0.000042 ether", "0 ether"]);
    expect(await paid(kind("replace")), "its value is not in the response").toEqual(["0.000042 ether"]);
    expect(await paid({ payload }, { effectiveGasPrice: null })).toEqual([
      "not known: the endpoints do not agree on the price",
      "1.234567890123456789 ether",
    ]);
    expect(await paid({ payload, subState: "NONCE_CONSUMED_EXTERNALLY" })).toEqual([]);
    const unmined = await run(["tx", "x"], { get: async () => ({ ...transaction, receipt: null }) });
    expect(unmined.stdout).not.toMatch(/fee paid|value moved/);
  });

  it("exits with the same codes as fencepost send if --wait is given", async () => {
    const failed = { ...transaction, state: "FAILED_FINAL", subState: "REVERTED", lastError: "out of gas" } as const;
    const { code, stderr } = await run(["tx", transaction.txId, "--wait"], { get: async () => failed });
    expect(code).toBe(5);
    expect(stderr).toContain("is FAILED_FINAL/REVERTED: out of gas\n");
  });

  it("prints colours on a terminal, unless they are switched off", async () => {
    const get = async () => transaction;
    const sequence = "\u001b[";
    expect((await run(["tx", "x"], { get }, { screen: SCREEN })).stdout).toContain(sequence);
    expect((await run(["tx", "x"], { get }, { screen: { ...SCREEN, colours: false } })).stdout).not.toContain(sequence);
    expect((await run(["tx", "x"], { get })).stdout).not.toContain(sequence);
    expect((await run(["tx", "x", "--json"], { get }, { screen: SCREEN })).stdout).not.toContain(sequence);
  });

  // protects [The command line] src/adapters/cli/table.ts
  it("removes control characters that could move the terminal's cursor", async () => {
    const get = async () => ({ ...transaction, requestId: "a\u001b[2Jb", lastError: "c\u0007\rd" });
    const { stdout } = await run(["tx", "x"], { get });
    expect(stdout).toMatch(/^request id +a \[2Jb$/m);
    expect(stdout).toMatch(/^last error +c d$/m);
  });
});

describe("fencepost explain", () => {
  it("prints the state of the transaction, its causes and the actions that help", async () => {
    const explain = async () => ({
      summary: "Waits at nonce 7.",
      causes: [{ code: "BLOCKED_BY_NONCE" as const, text: "nonce 6 is not mined", since: "2026-01-01T00:00:00.000Z" }],
      blockedBy: { txId: "the-other", nonce: 6 },
      help: [{ code: "REPRICE" as const, text: "offer more for nonce 6" }],
      actions: [{ ...examples.explanation.actions[0], path: "/api/v1/tx/the-other/reprice" }],
    });
    const client = { get: async () => transaction, explain } as unknown as Partial<FencepostClient>;
    expect((await run(["explain", transaction.txId], client)).stdout).toBe(
      `Waits at nonce 7.

Why:
  • nonce 6 is not mined (since 2026-01-01T00:00:00.000Z) BLOCKED_BY_NONCE

It waits for nonce 6: fencepost explain the-other.

What helps:
  → offer more for nonce 6 REPRICE
      fencepost reprice the-other --reason "explain: FEE_BELOW_BASE_FEE"
`,
    );
  });
});

describe("fencepost explain with a summary that already contains a cause", () => {
  it("prints the advice of the summary only once", async () => {
    for (const [code, text, said] of [
      ["REPRICE", "offer more for nonce 7", "What helps: offer more for nonce 7."],
      ["WAIT", "it is sent by itself", "It is sent by itself."],
    ]) {
      const explain = async () => ({
        summary: `Nonce 8 waits. ${said} Asked for now.`,
        causes: [],
        help: [{ code, text }],
        actions: [],
      });
      const client = { get: async () => transaction, explain } as unknown as Partial<FencepostClient>;
      expect((await run(["explain", "x"], client)).stdout).toBe(
        `Nonce 8 waits. Asked for now.\n\nWhat helps:\n  → ${text} ${code}\n`,
      );
    }
  });

  it("prints the cause only once", async () => {
    const text = "mined in block 36 and final";
    const explain = async () => ({
      summary: `CONFIRMED: ${text}`,
      causes: [{ code: "CONFIRMED", text }],
      help: [],
      actions: [],
    });
    const client = { get: async () => transaction, explain } as unknown as Partial<FencepostClient>;
    expect((await run(["explain", "x"], client)).stdout).toBe(`CONFIRMED: ${text} CONFIRMED\n`);
  });
});

describe("the commands that fencepost explain prints", () => {
  const SIGNER = transaction.signer;
  const TX = transaction.txId;
  const reason = "explain: WHY";
  type Offered = (typeof examples.explanation.actions)[number];
  const offered = (action: Offered["action"], path: string, body: Offered["body"] = {}): Offered => {
    return { action, code: "CANCEL", label: "", method: "POST", path, body: { reason, ...body }, scope: "operate" };
  };
  const ofTransaction = ["resubmit", "reprice", "cancel", "approve", "reject"] as const;
  const CASES: readonly [Offered, string, readonly unknown[]][] = [
    ...ofTransaction.map((action): [Offered, string, readonly unknown[]] => [
      offered(action, `/api/v1/tx/${TX}/${action}`),
      action,
      [TX, { reason }],
    ]),
    [offered("resume", `/api/v1/tx/${TX}/resume`), "resumeTransaction", [TX, { reason }]],
    [
      offered("resolve", `/api/v1/tx/${TX}/resolve`, { action: "PLACEHOLDER", nonce: 6 }),
      "resolve",
      [TX, { action: "PLACEHOLDER", nonce: 6, reason }],
    ],
    [
      offered("resumeLane", `/api/v1/signers/${SIGNER}/resume`, { chainId: 1 }),
      "resume",
      [SIGNER, { reason, chainId: 1 }],
    ],
    [offered("endKill", "/api/v1/kill"), "endKill", [{ reason }]],
    [offered("endKill", `/api/v1/signers/${SIGNER}/kill`), "endKill", [{ signer: SIGNER, reason }]],
  ];

  it("exist for every action that an explanation can offer", () => {
    expect([...new Set(CASES.map(([{ action }]) => action))].sort()).toEqual([...OFFERED_ACTIONS].sort());
  });

  // protects [Explained, and said aloud] src/adapters/cli/show-transaction.ts
  it.each(CASES)("perform the offered action $action", async (action, call, given) => {
    const explain = async () => ({
      ...examples.explanation,
      help: [{ code: "CANCEL", text: "that" }],
      actions: [action],
    });
    const asking = { get: async () => transaction, explain } as unknown as Partial<FencepostClient>;
    const { stdout } = await run(["explain", TX], asking);
    const [, line = ""] = /^ {6}fencepost (.*)$/m.exec(stdout) ?? [];
    const argv = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
    const asked: unknown[] = [];
    const acting = {
      [call]: async (...args: readonly unknown[]) => {
        asked.push(args.slice(0, 2));
        return call === "resume" ? [] : call === "endKill" ? { durable: true, kills: [], nodes: [] } : transaction;
      },
    } as unknown as Partial<FencepostClient>;
    expect(await run(argv, acting)).toMatchObject({ code: 0 });
    expect(asked).toEqual([given]);
  });
});

describe("fencepost list", () => {
  it("prints one page and how to get the next page, or all pages", async () => {
    const asked: TransactionListQuery[] = [];
    const list: FencepostClient["list"] = async (query = {}) => {
      asked.push(query);
      return { items: [transaction], next: query.after === undefined ? "more" : null };
    };
    expect((await run(["list"], { list })).stdout).toContain("more: --after more\n");
    const all = await run(["list", "--all", "--json", "--state", "TRACKING"], { list });
    expect(JSON.parse(all.stdout)).toMatchObject({ items: [{}, {}], next: null });
    expect(asked).toEqual([{}, { limit: 1000, state: "TRACKING" }, { limit: 1000, state: "TRACKING", after: "more" }]);
  });

  it("refuses an unknown state, and prints a sentence if the list is empty", async () => {
    expect((await run(["list", "--state", "LOST"], {})).code).toBe(2);
    const list = async () => ({ items: [], next: null });
    expect((await run(["list"], { list })).stdout).toBe("there is no such transaction\n");
  });
});
