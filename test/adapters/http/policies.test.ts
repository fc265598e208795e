import { describe, expect, it } from "vitest";
import { httpApp } from "../../support/http-app.ts";
import { SIGNER, SIGNER_EIP55 } from "../../support/scripted-api.ts";

describe("the routes of policies", () => {
  it("check a create for whoever asks, or for the key that is named", async () => {
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

  it("show what is in force, and what is used in wei as digits", async () => {
    const window = { value: 1n, cost: 2n, maxValue: null, maxCost: 10n ** 18n };
    const since = new Date("2026-11-17T12:00:00Z");
    const app = httpApp({
      policies: async () => ({ hash: "0x01", policies: { signers: {} } }),
      policyUsage: async () => ({
        at: since,
        signers: [{ lane: { chainId: 1, signer: SIGNER }, since, hour: window, day: window }],
        keys: [{ chainId: 1, key: "payments", since, hour: window, day: window }],
      }),
    });
    const inForce = await app.inject("/api/v1/policy");
    expect(inForce.json()).toEqual({ hash: "0x01", policies: { signers: {} } });
    const used = { value: "1", cost: "2", maxValue: null, maxCost: "1000000000000000000" };
    const windows = { since: since.toISOString(), hour: used, day: used };
    expect((await app.inject("/api/v1/policy/usage")).json()).toEqual({
      at: since.toISOString(),
      signers: [{ chainId: 1, signer: SIGNER_EIP55, ...windows }],
      keys: [{ chainId: 1, key: "payments", ...windows }],
    });
    expect((await app.inject("/api/v1/policy/usage?signer=0x1")).statusCode).toBe(400);
  });
});
