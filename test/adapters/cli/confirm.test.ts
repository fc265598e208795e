import { describe, expect, it } from "vitest";
import { type CommandWorld, runCommand } from "../../support/command.ts";
import { recordedNode } from "../../support/recorded-node.ts";

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

async function run(argv: readonly string[], world: CommandWorld = {}) {
  const { asked, actions = {} } = recordedNode();
  const questions: string[] = [];
  const ended = await runCommand(argv, { actions: { ...actions, ...world.actions }, questions, ...world });
  const writes = asked
    .filter(({ route }) => route.method !== "get")
    .map(({ route, body }) => [route.operationId, body]);
  return { ...ended, questions, writes };
}

const ASKING = [
  [["kill", "--reason", "stolen"], "killEverything", /^Stop EVERY signer on all nodes\?/],
  [["kill", SIGNER], "killSigner", /^Stop 0xf39F\w+ on all nodes\?/],
  [["keys", "api", "revoke", "checkout"], "revokeKey", /^Revoke the key checkout\?/],
  [["keys", "api", "revoke", "checkout", "--secret", "5f"], "revokeKey", /^Revoke the secret 5f of the key checkout\?/],
] as const;

describe.each(ASKING)("fencepost %j", (argv, operation, question) => {
  // protects [The command line] src/adapters/cli/confirm.ts
  it("asks on a terminal, and does nothing unless the answer is yes", async () => {
    for (const answer of ["", "n", "no", "yess", "q"]) {
      const { code, writes, questions, stderr, stdout } = await run(argv, { typed: [answer] });
      expect({ code, writes, stderr, stdout }).toEqual({
        ...{ code: 1, writes: [], stderr: "fencepost: nothing was done\n", stdout: "" },
      });
      expect(questions).toEqual([expect.stringMatching(question)]);
    }
    for (const answer of ["y", "YES", " yes "]) {
      const { code, writes } = await run(argv, { typed: [answer] });
      expect({ code, operations: writes.map(([name]) => name) }).toEqual({ code: 0, operations: [operation] });
    }
  });

  it("asks nothing with --yes, and nothing without a terminal", async () => {
    const confirmed = await run([...argv, "--yes"], { typed: [] });
    const scripted = await run(argv);
    for (const { code, questions, writes } of [confirmed, scripted]) {
      expect({ code, questions, operations: writes.map(([name]) => name) }).toEqual({
        ...{ code: 0, questions: [], operations: [operation] },
      });
    }
    expect(confirmed.writes, "--yes is not part of the request").toEqual(scripted.writes);
  });
});

describe("fencepost suspend", () => {
  const because = ["--reason", "audit"];
  const onChains = (...chainIds: readonly number[]) => {
    const done: unknown[] = [];
    const client = {
      signer: async () => chainIds.map((chainId) => ({ chainId })),
      suspend: async (...request: unknown[]) => {
        done.push(request);
        return [];
      },
    };
    return { done, actions: { connect: async () => client as never } };
  };

  it("asks on a terminal if it stops a signer on several chains", async () => {
    const { done, actions } = onChains(1, 10);
    const { questions, code } = await run(["suspend", SIGNER, ...because], { actions, typed: ["n"] });
    expect({ code, done, questions }).toEqual({
      ...{ code: 1, done: [] },
      questions: [`Suspend ${SIGNER} on all its chains (1, 10)? One chain alone: --chain-id. [y/N] `],
    });
  });

  it("asks nothing about one chain", async () => {
    for (const [actions, argv] of [
      [onChains(1), []],
      [onChains(1, 10), ["--chain-id", "10"]],
    ] as const) {
      const { questions, code } = await run(["suspend", SIGNER, ...because, ...argv], { ...actions, typed: [] });
      expect({ code, questions, times: actions.done.length }).toEqual({ code: 0, questions: [], times: 1 });
    }
  });

  it("asks if the signer's chains cannot be read", async () => {
    const { done, actions } = onChains();
    const unreadable = { signer: async () => Promise.reject(new Error("no")) };
    const { questions } = await run(["suspend", SIGNER, ...because], {
      actions: { connect: async () => ({ ...((await actions.connect()) as object), ...unreadable }) as never },
      typed: [""],
    });
    expect(questions).toHaveLength(1);
    expect(done).toEqual([]);
  });
});
