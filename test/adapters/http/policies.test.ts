import { describe, expect, it, vi } from "vitest";
import type { ApiKey, Refusal } from "../../../src/adapters/http/exchange/options.ts";
import { httpApp } from "../../support/http-app.ts";
import { SIGNER, SIGNER_EIP55 } from "../../support/scripted-api.ts";

const since = new Date("2026-11-17T12:00:00Z");
const changed = { version: 3, changedAt: since, changedBy: "operator:alice", reason: "less" };
const expected = { ...changed, changedAt: since.toISOString(), hash: "0x01", policies: { signers: {} } };

describe("the policy routes over HTTP", () => {
  it("check a create against the policies of the caller's API key, or of a named key", async () => {
    const asked: unknown[] = [];
    const app = httpApp({
      checkPolicy: async (request, owner) => {
        asked.push([request, owner]);
        return { allowed: false, value: 1n, cost: 2n, rule: "signer.to", detail: "no" };
      },
    });
    const payload = { to: SIGNER, value: "1" };
    const check = (body: object) => app.inject({ method: "POST", url: "/api/v1/policy/check", payload: body });
    const answer = await check({ signer: SIGNER, payload, key: "payments" });
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual({ allowed: false, value: "1", cost: "2", rule: "signer.to", detail: "no" });
    await check({ signer: SIGNER, payload });
    expect(asked).toEqual([
      [{ signer: SIGNER, payload }, "payments"],
      [{ signer: SIGNER, payload }, undefined],
    ]);
    expect((await check({ signer: SIGNER, payload, key: 5 })).statusCode).toBe(400);
  });

  // protects [Attacks] src/application/authority.ts
  it("answer 403 if a key without the scope operate names another key", async () => {
    const refusals: Refusal[] = [];
    const secrets = { submit: "s".repeat(22), operate: "o".repeat(22) };
    const apiKeys: ApiKey[] = [
      { name: "shop", secret: secrets.submit, scopes: ["read", "submit"] },
      { name: "on-call", secret: secrets.operate, scopes: ["read", "operate"] },
    ];
    const checkPolicy = vi.fn(async () => ({ allowed: true, value: 1n, cost: 2n }));
    const app = httpApp({ checkPolicy }, { apiKeys, onRefused: (refusal) => void refusals.push(refusal) });
    const check = (secret: string) =>
      app.inject({
        ...{ method: "POST", url: "/api/v1/policy/check", headers: { authorization: `Bearer ${secret}` } },
        payload: { signer: SIGNER, payload: { to: SIGNER }, key: "payments" },
      });
    const refused = await check(secrets.submit);
    expect(refused.json()).toMatchObject({ status: 403, code: "FORBIDDEN", rule: "scope:operate" });
    const route = { method: "POST", route: "/api/v1/policy/check" };
    expect(refusals).toEqual([{ code: "FORBIDDEN", rule: "scope:operate", key: "shop", ...route }]);
    expect(checkPolicy).not.toHaveBeenCalled();
    expect((await check(secrets.operate)).statusCode).toBe(200);
    expect(checkPolicy).toHaveBeenCalledExactlyOnceWith(expect.anything(), "payments", expect.anything());
  });

  it("show the policies in force, and the usage in decimal wei", async () => {
    const window = { value: 1n, cost: 2n, maxValue: null, maxCost: 10n ** 18n };
    const app = httpApp({
      policies: async () => ({ ...changed, hash: "0x01", policies: { signers: {} } }),
      policyUsage: async () => ({
        at: since,
        signers: [{ lane: { chainId: 1, signer: SIGNER }, since, hour: window, day: window }],
        keys: [{ chainId: 1, key: "payments", since, hour: window, day: window }],
      }),
    });
    const inForce = await app.inject("/api/v1/policy");
    expect(inForce.json()).toEqual(expected);
    const used = { value: "1", cost: "2", maxValue: null, maxCost: "1000000000000000000" };
    const windows = { since: since.toISOString(), hour: used, day: used };
    expect((await app.inject("/api/v1/policy/usage")).json()).toEqual({
      at: since.toISOString(),
      signers: [{ chainId: 1, signer: SIGNER_EIP55, ...windows }],
      keys: [{ chainId: 1, key: "payments", ...windows }],
    });
    expect((await app.inject("/api/v1/policy/usage?signer=0x1")).statusCode).toBe(400);
  });

  // protects [Attacks] src/contract/scopes.ts, src/application/authority.ts
  it("change the policy document only with the scope admin", async () => {
    const secrets = { operate: "o".repeat(22), admin: "a".repeat(22), part: "p".repeat(22) };
    const apiKeys: ApiKey[] = [
      { name: "on-call", secret: secrets.operate, scopes: ["read", "submit", "operate", "approve"] },
      { name: "alice", secret: secrets.admin, scopes: ["admin"] },
      { name: "of-a-chain", secret: secrets.part, scopes: ["admin"], chains: [1] },
    ];
    const applyPolicies = vi.fn(async () => ({ ...changed, hash: "0x01" as const, policies: { signers: {} } }));
    const app = httpApp({ applyPolicies }, { apiKeys });
    const payload = { policies: { signers: {} }, reason: "less", expectedVersion: 2 };
    const apply = (secret: string) => {
      const headers = { authorization: `Bearer ${secret}` };
      return app.inject({ method: "PUT", url: "/api/v1/policy", headers, payload });
    };
    expect((await apply(secrets.operate)).json()).toMatchObject({ status: 403, rule: "scope:admin" });
    expect((await apply(secrets.part)).statusCode).toBe(403);
    expect(applyPolicies).not.toHaveBeenCalled();
    expect((await apply(secrets.admin)).json()).toEqual(expected);
    expect(applyPolicies).toHaveBeenCalledExactlyOnceWith(payload, "operator:alice");
  });
});
