import { describe, expect, it, vi } from "vitest";
import type { HttpServerOptions } from "../../../src/adapters/http/exchange/options.ts";
import type { KillActionRequest, KillAnswer } from "../../../src/application/api.ts";
import { OPEN } from "../../../src/application/loops/reception.ts";
import { unavailable } from "../../../src/domain/errors.ts";
import { SCOPES } from "../../../src/domain/keys/principal.ts";
import { httpApp } from "../../support/http-app.ts";
import { SIGNER, SIGNER_EIP55, sampleTxId } from "../../support/scripted-api.ts";

const inForce: KillAnswer = {
  durable: true,
  kills: [{ killId: sampleTxId(1), signer: SIGNER, actor: "operator:shop", reason: "stolen" }],
  nodes: [{ nodeId: "node-b", url: "http://node-b:3000", told: true }],
};
const over: KillAnswer = { durable: true, kills: [], nodes: [] };

function bench(options: Partial<HttpServerOptions> = {}) {
  const kill = vi.fn(async (_: KillActionRequest) => inForce);
  const endKill = vi.fn(async (_: KillActionRequest) => over);
  const apiKeys = [{ name: "shop", secret: "key", scopes: SCOPES }];
  const app = httpApp({ kill, endKill }, { apiKeys, ...options });
  const ask = (method: "POST" | "DELETE", path: string, payload?: object, authorization = "Bearer key") =>
    app.inject({ method, url: `/api/v1${path}`, headers: { authorization }, ...(payload && { payload }) });
  return { kill, endKill, ask };
}

describe("the kill switch over HTTP", () => {
  it("stops all signers or one signer, and records the API key's name", async () => {
    const { ask, kill } = bench();
    const answer = await ask("POST", "/kill", { reason: "stolen" });
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual({ ...inForce, kills: [{ ...inForce.kills[0], signer: SIGNER_EIP55 }] });
    await ask("POST", `/signers/${SIGNER}/kill`, { reason: "stolen" });
    const actionRequest = { request: { reason: "stolen" }, actor: "operator:shop" };
    expect(kill.mock.calls).toEqual([[{ ...actionRequest, signer: null }], [{ ...actionRequest, signer: SIGNER }]]);
  });

  it("needs neither a body nor a reason", async () => {
    const { ask, kill, endKill } = bench();
    expect((await ask("POST", "/kill")).statusCode).toBe(200);
    expect((await ask("DELETE", "/kill")).json()).toEqual(over);
    for (const { mock } of [kill, endKill]) {
      expect(mock.calls).toEqual([[{ signer: null, request: undefined, actor: "operator:shop" }]]);
    }
  });

  it("is ended by DELETE on the same path", async () => {
    const { ask, kill, endKill } = bench();
    expect((await ask("DELETE", `/signers/${SIGNER}/kill`, { reason: "a false alarm" })).statusCode).toBe(200);
    expect(endKill).toHaveBeenCalledExactlyOnceWith({
      signer: SIGNER,
      request: { reason: "a false alarm" },
      actor: "operator:shop",
    });
    expect(kill).not.toHaveBeenCalled();
  });

  it("answers 202 if the kill is in force but not yet stored durably", async () => {
    const { ask, kill } = bench();
    kill.mockResolvedValueOnce({ ...inForce, durable: false });
    const answer = await ask("POST", "/kill");
    expect(answer.statusCode).toBe(202);
    expect(answer.json()).toMatchObject({ durable: false });
  });

  it("answers 200 when a kill has ended, even if another kill is not yet stored durably", async () => {
    const { ask, endKill } = bench();
    endKill.mockResolvedValueOnce({ ...inForce, durable: false });
    const answer = await ask("DELETE", "/kill");
    expect([answer.statusCode, answer.json().durable]).toEqual([200, false]);
  });

  it("answers 503 if the end of a kill could not be stored", async () => {
    const { ask, endKill } = bench();
    endKill.mockRejectedValueOnce(unavailable("the database is away"));
    expect((await ask("DELETE", "/kill")).statusCode).toBe(503);
  });

  it("requires an API key, and accepts no query string", async () => {
    const { ask, kill, endKill } = bench();
    for (const method of ["POST", "DELETE"] as const) {
      expect((await ask(method, "/kill", undefined, "Bearer stranger")).statusCode).toBe(401);
      expect((await ask(method, "/kill?all=true")).statusCode).toBe(400);
    }
    expect([kill.mock.calls, endKill.mock.calls]).toEqual([[], []]);
  });

  // protects [The kill switch] src/contract/scopes.ts
  it("needs the scope operate or admin to start a kill", async () => {
    const apiKeys = SCOPES.map((scope) => ({ name: scope, secret: scope, scopes: [scope] }));
    const { ask } = bench({ apiKeys });
    const allowed = async (method: "POST" | "DELETE", path: string) => {
      const answers = SCOPES.map((scope) => ask(method, path, undefined, `Bearer ${scope}`));
      const statuses = (await Promise.all(answers)).map(({ statusCode }) => statusCode);
      expect(new Set(statuses)).toEqual(new Set([200, 403]));
      return SCOPES.filter((_, at) => statuses[at] === 200);
    };
    for (const path of ["/kill", `/signers/${SIGNER}/kill`]) {
      expect(await allowed("POST", path)).toEqual(["operate", "admin"]);
      expect(await allowed("DELETE", path)).toEqual(["admin"]);
    }
  });

  // protects [The kill switch] src/adapters/http/app.ts
  it("is admitted under overload, ahead of waiting requests", async () => {
    const full = {
      admittance: () => OPEN,
      turnMs: 0,
      limit: 0,
      onRefused: () => undefined,
      onWaiting: () => undefined,
    };
    const { ask, kill } = bench({ admission: full });
    expect((await ask("POST", `/signers/${SIGNER}/suspend`, { reason: "x" })).statusCode).toBe(429);
    expect((await ask("POST", "/kill")).statusCode).toBe(200);
    expect(kill).toHaveBeenCalledTimes(1);
  });
});
