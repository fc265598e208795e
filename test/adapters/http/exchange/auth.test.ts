import { describe, expect, it } from "vitest";
import { inPath } from "../../../../src/adapters/http/exchange/auth.ts";
import type { ApiKey } from "../../../../src/adapters/http/exchange/options.ts";
import { ANYBODY, SCOPES, type Scope } from "../../../../src/domain/keys/principal.ts";
import { httpApp } from "../../../support/http-app.ts";
import { sampleCreated } from "../../../support/scripted-api.ts";

const apiKeys: readonly ApiKey[] = [
  { name: "shop", secret: "correct-horse" },
  { name: "ops", secret: "battery-staple", scopes: ["read"] },
];
const files = new Map([
  ["/", { contentType: "text/html", body: "<!doctype html>" }],
  ["/dashboard/app.js", { contentType: "text/javascript", body: "" }],
]);

const script = {
  create: () => Promise.resolve(sampleCreated()),
  signers: () => Promise.resolve({ items: [], next: null }),
  transactions: () => Promise.resolve({ items: [], next: null }),
  readiness: () => Promise.resolve({ ready: true, database: true, chains: [], draining: false }),
};

const guarded = httpApp(script, { apiKeys, files });

const get = (url: string, authorization?: string) =>
  guarded.inject({ url, headers: authorization === undefined ? {} : { authorization } });

describe("API key authentication", () => {
  it.each([["correct-horse"], ["battery-staple"]])("admits every configured key: %s", async (secret) => {
    expect((await get("/api/v1/signers", `Bearer ${secret}`)).statusCode).toBe(200);
    expect((await get("/metrics", `bearer ${secret}`)).statusCode).toBe(200);
  });

  it.each([
    ["nothing", undefined],
    ["an empty header", ""],
    ["another scheme", "Basic Y29ycmVjdC1ob3JzZQ=="],
    ["no scheme", "correct-horse"],
    ["no secret", "Bearer "],
    ["a wrong secret", "Bearer wrong"],
    ["a prefix", "Bearer correct-hors"],
    ["a longer one", "Bearer correct-horsee"],
    ["another casing", "Bearer Correct-Horse"],
    ["two secrets", "Bearer correct-horse battery-staple"],
    ["the key's name", "Bearer shop"],
    ["name and secret", "Bearer shop:correct-horse"],
  ])("refuses %s in the Authorization header", async (_, authorization) => {
    const response = await get("/api/v1/signers", authorization);
    expect(response.statusCode).toBe(401);
    expect(response.headers["www-authenticate"]).toBe('Bearer realm="fencepost"');
    expect(response.json()).toMatchObject({ code: "UNAUTHENTICATED", status: 401 });
    expect(response.body).not.toContain("horse");
  });

  it("happens before a body is read", async () => {
    const response = await guarded.inject({ method: "POST", url: "/api/v1/tx", payload: "x".repeat(300 * 1024) });
    expect(response.statusCode).toBe(401);
  });

  it.each([
    ["/api/v1/tx"],
    ["/api/v1/tx/completions"],
    ["/api/v1/tx/by-request"],
    ["/api/v1/tx/019a4b7e-0000-7000-8000-000000000001"],
    ["/api/v1/signers"],
    ["/api/v1/signers/0x00"],
    ["/api/v1/nodes"],
    ["/api/v1/leases"],
    ["/metrics"],
  ])("is required by %s", async (url) => {
    expect((await get(url)).statusCode).toBe(401);
    expect((await guarded.inject({ method: "HEAD", url })).statusCode).toBe(401);
  });

  it.each([["/healthz"], ["/readyz"], ["/openapi.json"], ["/docs"], ["/docs/style.css"], ["/"], ["/dashboard/app.js"]])(
    "is not required by %s",
    async (url) => {
      expect((await get(url)).statusCode).toBe(200);
    },
  );

  it("is not required to get a 404 for an unknown route", async () => {
    expect((await get("/api/v1/nothing")).statusCode).toBe(404);
  });

  it("admits no caller if the list of keys is empty", async () => {
    const closed = httpApp(script, { apiKeys: [] });
    expect((await closed.inject("/api/v1/signers")).statusCode).toBe(401);
  });

  it("admits every caller if API keys are set to `none`", async () => {
    const open = httpApp(script, { apiKeys: "none" });
    expect((await open.inject("/api/v1/signers")).statusCode).toBe(200);
    expect((await open.inject("/metrics")).statusCode).toBe(200);
  });
});

// protects [Attacks] src/adapters/http/exchange/auth.ts, src/adapters/http/exchange/problems.ts
it("an API key in the URL path may only read and submit", () => {
  const scopes = (...own: readonly Scope[]) => [...inPath({ ...ANYBODY, name: "boss", scopes: new Set(own) }).scopes];
  expect(scopes(...SCOPES)).toEqual(["read", "submit"]);
  expect(scopes("submit", "admin")).toEqual(["submit"]);
  expect(scopes("operate", "approve", "sign", "reserve")).toEqual([]);
});
