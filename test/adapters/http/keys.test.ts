import { describe, expect, it } from "vitest";
import type { ApiKey, HttpServerOptions } from "../../../src/adapters/http/exchange/options.ts";
import { LiveKeys } from "../../../src/application/live-keys.ts";
import type { FencepostApi } from "../../../src/application/operations/calls.ts";
import { NO_QUOTAS, type Principal } from "../../../src/domain/keys/principal.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { httpApp } from "../../support/http-app.ts";
import { RECIPIENT, RECIPIENT_EIP55, SIGNER } from "../../support/scripted-api.ts";
import { World } from "../../support/world.ts";

const SECRET = "s".repeat(22);
const headers = { authorization: `Bearer ${SECRET}` };
const ROOT: ApiKey = { name: "root", secret: SECRET, scopes: ["admin"] };

async function withKeys<T>(
  work: (app: ReturnType<typeof httpApp>, api: FencepostApi) => Promise<T>,
  options: Partial<HttpServerOptions> = {},
): Promise<T> {
  const world = new World();
  try {
    const { node } = await world.startNode();
    return await work(httpApp({}, { api: node.api, apiKeys: [ROOT], ...options }), node.api);
  } finally {
    await world.close();
  }
}

describe("/api/v1/keys", () => {
  // protects [Attacks] src/adapters/http/exchange/auth.ts, src/application/operations/keys.ts
  it("returns the secret of a new key only once", async () => {
    await withKeys(async (app) => {
      const payload = {
        name: "shop",
        scopes: ["submit", "read", "read"],
        signers: [RECIPIENT_EIP55],
        queueShare: 0.25,
      };
      const made = await app.inject({ method: "POST", url: "/api/v1/keys", headers, payload });
      expect(made.statusCode).toBe(201);
      expect(made.headers["cache-control"]).toBe("no-store");
      const { secret, ...shown } = made.json();
      expect(secret.length).toBeGreaterThanOrEqual(22);
      expect(shown).toEqual({
        ...{ name: "shop", scopes: ["read", "submit"], signers: [RECIPIENT_EIP55], chains: null },
        ...{ createsPerSecond: null, readsPerSecond: null, queueShare: 0.25 },
        secretId: "55555555",
      });
      const listed = await app.inject({ url: "/api/v1/keys", headers });
      expect(listed.json().items).toMatchObject([{ name: "shop", secrets: [{ secretId: "55555555" }] }]);
      expect(listed.body).not.toContain(secret);
      const url = "/api/v1/keys/shop";
      const revoked = await app.inject({ method: "DELETE", url: `${url}?secret=55555555`, headers });
      expect(revoked.json()).toEqual({ name: "shop", secretId: "55555555" });
      expect((await app.inject({ method: "DELETE", url, headers })).json()).toEqual({ name: "shop", secretId: null });
      expect((await app.inject({ method: "DELETE", url, headers })).statusCode).toBe(404);
    });
  });

  it("adds a second secret to a key if the limits are the same", async () => {
    await withKeys(async (app) => {
      const post = (payload: object) => app.inject({ method: "POST", url: "/api/v1/keys", headers, payload });
      const statuses = [];
      for (const more of [{}, {}, {}, { chains: [1] }, { createsPerSecond: 5 }])
        statuses.push((await post({ name: "shop", ...more })).statusCode);
      expect(statuses).toEqual([201, 201, 409, 409, 409]);
      expect((await post({ name: "shop", chains: [1] })).json()).toMatchObject({ code: "CONFLICT" });
    });
  });

  it.each([
    [{}, "name"],
    [{ name: "a b" }, "name"],
    [{ name: "a", scopes: [] }, "scopes"],
    [{ name: "a", scopes: null }, "scopes"],
    [{ name: "a", scopes: ["root"] }, "scopes.0"],
    [{ name: "a", signers: ["0x1"] }, "signers.0"],
    [{ name: "a", chains: [0] }, "chains.0"],
    [{ name: "a", secret: "mine" }, "secret"],
    [{ name: "a", createsPerSecond: 0 }, "createsPerSecond"],
    [{ name: "a", createsPerSecond: 1.5 }, "createsPerSecond"],
    [{ name: "a", readsPerSecond: 0 }, "readsPerSecond"],
    [{ name: "a", queueShare: 0 }, "queueShare"],
    [{ name: "a", queueShare: 1.1 }, "queueShare"],
    [{ name: "a", queueShare: 0.00001 }, "queueShare"],
  ])("refuses %j with the name of the bad field", async (payload, path) => {
    await withKeys(async (app) => {
      const response = await app.inject({ method: "POST", url: "/api/v1/keys", headers, payload });
      expect(response.json()).toMatchObject({ status: 400, path });
    });
  });

  it("refuses to revoke an invalid key name without calling the database", async () => {
    await withKeys(async (app) => {
      const revoked = await app.inject({ method: "DELETE", url: "/api/v1/keys/%00", headers });
      expect(revoked.statusCode).toBe(400);
      expect(revoked.json()).toMatchObject({ code: "INVALID_REQUEST" });
    });
  });

  // protects [Attacks] src/application/authority.ts
  it("refuses a caller whose key has limits", async () => {
    const apiKeys = [{ ...ROOT, signers: [SIGNER] }];
    await withKeys(
      async (app) => {
        const payload = { name: "mightier" };
        const response = await app.inject({ method: "POST", url: "/api/v1/keys", headers, payload });
        expect(response.json()).toMatchObject({ status: 403, rule: "signers" });
      },
      { apiKeys },
    );
  });
});

describe("an API key stored in the database", () => {
  // protects [Attacks] src/adapters/http/exchange/auth.ts, src/application/operations/keys.ts
  it("has its own permissions", async () => {
    const { hash } = await import("node:crypto");
    const digest = hash("sha256", "a-secret-of-the-database", "hex");
    const limits = { signers: new Set([RECIPIENT]), chains: null };
    const live: Principal = { name: "live", scopes: new Set(["read"]), ...limits, ...NO_QUOTAS };
    const liveKeys = { find: (offered: string) => (offered === digest ? live : null) };
    await withKeys(
      async (app) => {
        const get = async (url: string, secret: string) =>
          (await app.inject({ url, headers: { authorization: `Bearer ${secret}` } })).statusCode;
        expect(await get(`/api/v1/signers/${SIGNER}`, "a-secret-of-the-database")).toBe(403);
        expect(await get("/api/v1/nodes", "a-secret-of-the-database")).toBe(200);
        expect(await get("/api/v1/keys", "a-secret-of-the-database")).toBe(403);
        expect(await get("/api/v1/nodes", digest)).toBe(401);
      },
      { liveKeys },
    );
  });

  // protects [Attacks] src/application/live-keys.ts, src/main/service.ts
  it("gets 503, not 401, while the node starts", async () => {
    const liveKeys = new LiveKeys({ clock: createManualClock(), trustedMs: 1_000, quotas: NO_QUOTAS });
    await withKeys(
      async (app) => {
        const asked = await app.inject({
          url: "/api/v1/nodes",
          headers: { authorization: `Bearer ${"d".repeat(22)}` },
        });
        expect(asked.json()).toMatchObject({ status: 503, code: "UNAVAILABLE" });
        expect((await app.inject({ url: "/api/v1/keys", headers })).statusCode).toBe(200);
        expect((await app.inject({ url: "/api/v1/keys" })).statusCode).toBe(401);
      },
      { liveKeys },
    );
  });
});
