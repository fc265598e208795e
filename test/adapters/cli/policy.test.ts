import { describe, expect, it } from "vitest";
import type { FencepostClient, PolicyVerdict } from "../../../src/client/index.ts";
import { runCommand } from "../../support/command.ts";

const signer = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const window = { value: "5", cost: "9", maxValue: "10", maxCost: null } as const;
const used = { chainId: 1, since: "2026-11-17T10:00:00.000Z", hour: window, day: window };

const change = { version: 3, changedAt: used.since, changedBy: "operator:alice", reason: "less" };
const files = { "policies.json": '{"signers":{}}', "broken.json": "{" };

async function run(argv: readonly string[], verdict: Partial<PolicyVerdict> = {}, hash: string | null = "0xab") {
  const asked: unknown[] = [];
  const client: Partial<FencepostClient> = {
    policies: async () => ({ ...change, hash, policies: hash === null ? null : { keys: {} } }),
    applyPolicies: async (request) => {
      asked.push(request);
      return { ...change, version: 4, hash, policies: request.policies };
    },
    checkPolicy: async (check) => {
      asked.push(check);
      return { allowed: true, value: "1", cost: "2", ...verdict };
    },
    policyUsage: async (query) => {
      asked.push(query);
      return { at: "2026-11-17T10:30:00.000Z", signers: [{ signer, ...used }], keys: [{ key: "payments", ...used }] };
    },
  };
  const connect = async () => client as FencepostClient;
  const { code, stdout, stderr } = await runCommand(argv, { actions: { connect }, files });
  return { code, text: stdout + stderr, asked };
}

describe("fencepost policy", () => {
  it("prints the policies in force, or that there are none", async () => {
    const { text } = await run(["policy", "show"]);
    expect(text).toContain("version 3, 2026-11-17T10:00:00.000Z, by operator:alice: less\n");
    expect(text).toContain('0xab\n{\n  "keys": {}');
    expect((await run(["policy", "show"], {}, null)).text).toContain("nothing is limited");
  });

  it("applies a document from a file, with a reason and the expected version", async () => {
    const apply = ["policy", "apply", "policies.json", "--reason", "less"];
    const { asked, text } = await run([...apply, "--expected-version", "3"]);
    expect(asked).toEqual([{ policies: { signers: {} }, reason: "less", expectedVersion: 3 }]);
    expect(text).toMatch(/^version 4, /);
    expect((await run(apply)).asked).toEqual([{ policies: { signers: {} }, reason: "less" }]);
    expect(await run(["policy", "apply", "policies.json"])).toMatchObject({ code: 2, asked: [] });
    const broken = await run(["policy", "apply", "broken.json", "--reason", "less"]);
    expect(broken).toMatchObject({ code: 2, asked: [], text: expect.stringMatching(/broken.json: is not JSON/) });
  });

  it("checks a transaction against the policies of the caller's API key, or of the key given by --key", async () => {
    const payload = { to: signer, value: "1" };
    const check = ["policy", "check", "--signer", signer, "--payload", JSON.stringify(payload)];
    const { asked, text } = await run(check);
    expect(asked).toEqual([{ signer, payload }]);
    expect(text).toBe("allowed: it moves 1 wei, and costs 2 wei at most\n");
    expect((await run([...check, "--key", "payments", "--chain-id", "10"])).asked).toEqual([
      { signer, payload, chainId: 10, key: "payments" },
    ]);
    const refused = { rule: "signer.to", detail: "no such receiver" };
    expect((await run(check, { allowed: false, ...refused })).text).toMatch(
      /^not allowed by signer.to: no such receiver/,
    );
    const waits = { awaitsApproval: true, rule: "key.requireApproval", detail: "too much" };
    expect((await run(check, waits)).text).toMatch(/^would wait for approval by key.requireApproval: too much/);
    expect((await run(["policy", "check"])).code).toBe(2);
  });

  it("prints the current usage beside each limit", async () => {
    const { text, asked } = await run(["policy", "usage", "--key", "payments"]);
    expect(asked).toEqual([{ key: "payments" }]);
    expect(text).toContain(signer);
    expect(text).toMatch(/key payments +1 +5 of 10 +9 of any +5 of 10 +9 of any/);
    expect(JSON.parse((await run(["--json", "policy", "usage"])).text)).toHaveProperty("keys");
  });
});
