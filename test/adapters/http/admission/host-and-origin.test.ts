import { describe, expect, it } from "vitest";
import type { WireOptions } from "../../../../src/adapters/http/admission/host-and-origin.ts";
import { httpApp } from "../../../support/http-app.ts";
import { sampleCreated } from "../../../support/scripted-api.ts";

const files = new Map([["/", { contentType: "text/html", body: "<!doctype html>" }]]);
const script = {
  create: () => Promise.resolve(sampleCreated()),
  signers: () => Promise.resolve({ items: [], next: null }),
  readiness: () => Promise.resolve({ ready: true, database: true, chains: [], draining: false }),
};

async function ask(wire: WireOptions, headers: Readonly<Record<string, string>>, url = "/api/v1/signers") {
  return httpApp(script, { wire, files }).inject({ url, headers });
}

async function statusOf(wire: WireOptions, headers: Readonly<Record<string, string>>, url?: string) {
  return (await ask(wire, headers, url)).statusCode;
}

const OPEN_NODE: WireOptions = { hosts: { own: ["10.0.0.7", "relay.example"] }, origins: [] };

describe("the Host header", () => {
  it.each([
    ["localhost:3000", 200],
    ["LocalHost", 200],
    ["app.localhost:3000", 200],
    ["127.0.0.1:3000", 200],
    ["[::1]:3000", 200],
    ["10.0.0.7:3000", 200],
    ["relay.example", 200],
    ["attacker.example:3000", 403],
    ["localhost.attacker.example", 403],
    ["localhost@attacker.example", 403],
    ["127.0.0.1.attacker.example", 403],
    ["10.0.0.8", 403],
    // protects [Attacks] src/adapters/http/admission/host-and-origin.ts
  ])("is checked on a node without API keys: %s is answered with %i", async (host, status) => {
    const response = await ask(OPEN_NODE, { host });
    expect(response.statusCode).toBe(status);
    if (status === 403) expect(response.json()).toMatchObject({ code: "FORBIDDEN", rule: "host" });
  });

  it.each([
    ["10.9.9.9:3000", 200],
    ["[fd00::1]:3000", 200],
    ["attacker.example", 403],
  ])("is checked on a wildcard address: %s is answered with %i", async (host, status) => {
    expect(await statusOf({ hosts: { own: ["0.0.0.0"] }, origins: [] }, { host })).toBe(status);
  });

  it.each([
    ["relay.example", 200],
    ["relay.example:8443", 200],
    ["inner.example:3000", 200],
    ["inner.example:3001", 403],
    ["localhost", 403],
    ["plain.example", 200],
    ["plain.example:80", 200],
    ["[::1]:3000", 200],
  ])("must be one of the configured hosts: %s is answered with %i", async (host, status) => {
    expect(
      await statusOf(
        { hosts: ["Relay.example", "inner.example:3000", "plain.example:80", "[0:0:0:0:0:0:0:1]"], origins: [] },
        { host },
      ),
    ).toBe(status);
  });

  it("is not checked if API keys are required and no hosts are configured", async () => {
    expect(await statusOf({ hosts: "any", origins: [] }, { host: "anything.example" })).toBe(200);
  });

  it.each(["/healthz", "/readyz", "/metrics"])("is not checked for health checks at %s", async (url) => {
    expect(await statusOf(OPEN_NODE, { host: "10-1-2-3.pod.example" }, url)).toBe(200);
  });

  it("is checked on every other route, also for the dashboard and for unknown methods", async () => {
    const host = "attacker.example";
    expect(await statusOf(OPEN_NODE, { host }, "/")).toBe(403);
    const app = httpApp(script, { wire: OPEN_NODE, files });
    for (const method of ["POST", "PUT", "OPTIONS"] as const) {
      expect((await app.inject({ method, url: "/api/v1/tx", headers: { host } })).statusCode, method).toBe(403);
    }
  });
});

describe("a request from a web page", () => {
  const wire: WireOptions = { hosts: "any", origins: ["https://wallet.example"] };

  it.each([
    ["the node's own", { host: "relay.example", origin: "https://relay.example" }, 200],
    ["the node's own, with its port", { host: "localhost:3000", origin: "http://localhost:3000" }, 200],
    ["the node's own, behind a TLS proxy", { host: "relay.example:443", origin: "https://relay.example" }, 200],
    ["another port of the same machine", { host: "localhost:3000", origin: "http://localhost:5173" }, 403],
    ["another site", { host: "localhost:3000", origin: "https://attacker.example" }, 403],
    ["a sandboxed frame or a file", { host: "localhost:3000", origin: "null" }, 403],
    ["a listed site", { host: "localhost:3000", origin: "https://wallet.example" }, 200],
    ["a listed name under another scheme", { host: "localhost:3000", origin: "http://wallet.example" }, 403],
  ])("is answered or refused by its Origin header: %s", async (_, headers, status) => {
    const response = await ask(wire, headers);
    expect(response.statusCode).toBe(status);
    if (status === 403) expect(response.json()).toMatchObject({ code: "FORBIDDEN", rule: "origin" });
  });

  // protects [Attacks] src/adapters/http/admission/host-and-origin.ts
  it("cannot POST from another site, and nothing is created", async () => {
    let created = 0;
    const create = () => {
      created++;
      return Promise.resolve(sampleCreated());
    };
    const app = httpApp({ create }, { wire });
    const headers = { host: "localhost:3000", origin: "https://attacker.example", "content-type": "application/json" };
    const response = await app.inject({ method: "POST", url: "/api/v1/tx", headers, payload: "{}" });
    expect([response.statusCode, created]).toEqual([403, 0]);
  });

  it("may read, from another site, routes that need no API key", async () => {
    const headers = { host: "localhost:3000", origin: "https://attacker.example" };
    expect(await statusOf(wire, headers, "/openapi.json")).toBe(200);
    expect((await ask(wire, headers, "/openapi.json")).headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("gets CORS headers and preflight responses if its site is configured", async () => {
    const headers = { host: "localhost:3000", origin: "https://wallet.example" };
    const answer = await ask(wire, headers);
    expect(answer.headers).toMatchObject({
      "access-control-allow-origin": "https://wallet.example",
      "access-control-expose-headers": expect.stringContaining("retry-after"),
      vary: "origin",
    });
    const preflight = await httpApp(script, { wire, apiKeys: [] }).inject({
      method: "OPTIONS",
      url: "/api/v1/tx",
      headers: { ...headers, "access-control-request-method": "POST" },
    });
    expect(preflight.statusCode).toBe(204);
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": "https://wallet.example",
      "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id",
      "access-control-allow-methods": expect.stringContaining("POST"),
    });
  });
});
