import { describe, expect, it, vi } from "vitest";
import { createHttpApp } from "../../../src/adapters/http/app.ts";
import { scopeOf } from "../../../src/adapters/http/exchange/auth.ts";
import type { ApiKey, Refusal } from "../../../src/adapters/http/exchange/options.ts";
import type { FencepostApi } from "../../../src/application/operations/calls.ts";
import { ROUTES, type Route } from "../../../src/contract/routes.ts";
import { ROUTE_SCOPES } from "../../../src/contract/scopes.ts";
import { SCOPES, type Scope } from "../../../src/domain/keys/principal.ts";
import type { Reservation } from "../../../src/domain/transaction/reservations.ts";
import { httpApp, httpOptions } from "../../support/http-app.ts";
import {
  CHAIN_ID,
  RECIPIENT,
  SIGNER,
  SIGNER_EIP55,
  sampleCreated,
  sampleSignature,
  sampleTransaction,
  sampleTxId,
} from "../../support/scripted-api.ts";

/** Tests permissions route by route. The cases are generated from the declared routes, so that none is missed. */

const SECRET = "s".repeat(22);
const headers = { authorization: `Bearer ${SECRET}`, "content-type": "application/json" };
const WRITES = [
  "create",
  "createBatch",
  "reserveNonce",
  "act",
  "actOnLane",
  "submitReserved",
  "markUsed",
  "addKey",
  "revokeKey",
  "releaseNonce",
  "requestSignature",
  "decideSignature",
  "kill",
  "endKill",
];

function reservation(owner: string | null): Reservation {
  const lane = { chainId: CHAIN_ID, signer: SIGNER };
  const times = { expiresAt: new Date("2026-01-01T00:01:00.000Z"), state: "RESERVED" as const, ttlMs: 60_000 };
  return { reservationId: sampleTxId(2), lane, nonce: 8, requestId: null, txId: null, owner, ...times };
}

/**
 * Creates a server for which all transactions and reservations belong to `owner`; calls of other API methods are only
 * recorded. It has one API key for each scope, and one without scopes.
 */
function world() {
  const state = { owner: null as string | null, asked: [] as string[], refusals: [] as Refusal[] };
  const known: Partial<FencepostApi> = {
    transaction: async () => sampleTransaction({ owner: state.owner }),
    reservation: async () => reservation(state.owner),
    signature: async () => ({ ...sampleSignature(), owner: state.owner }),
  };
  const api = new Proxy({} as FencepostApi, {
    get: (_, method: string) => {
      const noted = async () => Promise.reject(new Error(String(state.asked.push(method))));
      return known[method as keyof FencepostApi] ?? noted;
    },
  });
  const keys = SCOPES.map((scope): ApiKey => ({ name: "mine", secret: secretOf(scope), scopes: [scope] }));
  const apiKeys = [...keys, { name: "mine", secret: SECRET }];
  const app = httpApp({}, { api, apiKeys, onRefused: (refusal) => void state.refusals.push(refusal) });
  return { app, state };
}

function secretOf(scope: Scope): string {
  return `${scope}-${SECRET}`;
}

function ask(app: ReturnType<typeof httpApp>, { method, path }: Route, secret = SECRET) {
  const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
  const ids = { txId: sampleTxId(1), reservationId: sampleTxId(2), signatureId: sampleTxId(3) };
  const names = { ...ids, signer: SIGNER_EIP55, name: "shop" };
  const url = path.replace(/\{(\w+)\}/g, (_, name: keyof typeof names) => names[name]);
  const needed: Readonly<Record<string, string>> = {
    "/api/v1/tx/by-request": `?signer=${SIGNER_EIP55}&requestId=r`,
    "/api/v1/search": "?q=order-42",
  };
  const query = needed[path] ?? "";
  const body = path.endsWith("/release") ? {} : { reason: "because", transactions: [{}] };
  const payload = method !== "post" ? {} : { payload: JSON.stringify(body) };
  return app.inject({ method: method as "get" | "post" | "delete", url: `${url}${query}`, headers, ...payload });
}

const guarded = ROUTES.filter(({ open }) => open !== true);
const cases = guarded.flatMap((route) =>
  SCOPES.flatMap((scope) => ["mine", "another's", "nobody's"].map((whose) => ({ route, scope, whose }))),
);

function isAllowed({ method, path }: Route, scope: Scope, whose: string): boolean {
  const needed = ROUTE_SCOPES[`${method} ${path}`];
  if (needed?.othersOnly === true && whose === "mine") return false;
  return needed?.scope === scope || needed?.or === scope || (needed?.own === scope && whose === "mine");
}

describe("every route of the API", () => {
  // protects [Attacks] src/application/authority.ts, src/contract/scopes.ts, src/adapters/http/exchange/auth.ts, src/adapters/http/exchange/problems.ts
  it("admits exactly the API keys with a scope that src/contract/scopes.ts lists for the route", async () => {
    expect(cases.length).toBeGreaterThan(400);
    const { app, state } = world();
    for (const { route, scope, whose } of cases) {
      const owner = { mine: "mine", "another's": "other" }[whose] ?? null;
      Object.assign(state, { owner, asked: [], refusals: [] });
      const response = await ask(app, route, secretOf(scope));
      const { asked, refusals } = state;
      const what = `${route.method} ${route.path} with ${scope}, ${whose}`;
      if (isAllowed(route, scope, whose)) {
        expect([401, 403], what).not.toContain(response.statusCode);
        expect(refusals, what).toEqual([]);
        continue;
      }
      expect(response.statusCode, what).toBe(403);
      expect(response.json(), what).toMatchObject({
        code: "FORBIDDEN",
        rule: expect.stringMatching(/^scope:|^owner$/),
      });
      expect(
        asked.filter((method) => WRITES.includes(method)),
        what,
      ).toEqual([]);
      const noted = { code: "FORBIDDEN", key: "mine", method: route.method.toUpperCase() };
      expect(refusals, what).toMatchObject([{ ...noted, rule: response.json().rule }]);
    }
  });

  // protects [Attacks] src/adapters/http/exchange/auth.ts
  it("has a scope listed in src/contract/scopes.ts", () => {
    const written = guarded.map(({ method, path }) => `${method} ${path}`);
    expect(Object.keys(ROUTE_SCOPES).sort()).toEqual(written.sort());
    expect(() => scopeOf({ method: "POST", url: "/api/v1/tx/:txId/burn" })).toThrow(
      "the route post /api/v1/tx/{txId}/burn has no scope",
    );
    const { app } = createHttpApp(httpOptions());
    expect(() => app.get("/api/v1/new", async () => "secret")).toThrow("has no scope");
  });
});

// protects [Attacks] src/adapters/http/app.ts, src/adapters/http/exchange/auth.ts
it("every route that requires an API key answers 401 without one, before anything is read", async () => {
  const { app, state } = world();
  for (const route of guarded) {
    const response = await ask(app, route, "nobody's");
    expect([response.statusCode, response.json().code], `${route.method} ${route.path}`).toEqual([
      401,
      "UNAUTHENTICATED",
    ]);
  }
  expect(state.asked).toEqual([]);
});

describe("an API key", () => {
  it("may only read and create if it has no scopes", async () => {
    const { app, state } = world();
    state.owner = "other";
    for (const route of guarded) {
      const { scope = "none" } = ROUTE_SCOPES[`${route.method} ${route.path}`] ?? {};
      const refused = (await ask(app, route)).statusCode === 403;
      expect(refused, `${route.method} ${route.path}`).toBe(scope !== "read" && scope !== "submit");
    }
  });

  // protects [Attacks] src/application/authority.ts
  it("without the scope operate may not replace a transaction", async () => {
    for (const owner of ["mine", "other", null]) {
      const act = vi.fn(async () => sampleTransaction());
      const transaction = async () => sampleTransaction({ owner });
      const app = httpApp({ act, transaction }, { apiKeys: [{ name: "mine", secret: SECRET }] });
      const payload = { reason: "because", payload: { to: RECIPIENT, value: "1" } };
      const url = `/api/v1/tx/${sampleTxId(1)}/replace`;
      const response = await app.inject({ method: "POST", url, headers, payload });
      expect(response.json()).toMatchObject({ status: 403, rule: "scope:operate" });
      expect(act).not.toHaveBeenCalled();
    }
  });

  // protects [Attacks] src/adapters/http/exchange/problems.ts
  it("that is limited to signers is refused item by item in a batch", async () => {
    const refusals: Refusal[] = [];
    const apiKeys = [{ name: "mine", secret: SECRET, signers: [RECIPIENT] }];
    const createBatch: FencepostApi["createBatch"] = async (requests, owner, limits) => {
      expect([owner, limits?.signers?.has(RECIPIENT)]).toEqual(["mine", true]);
      const { forbidden } = await import("../../../src/domain/keys/principal.ts");
      return requests.map((_, at) => (at === 0 ? forbidden("signers", "not this one") : sampleCreated()));
    };
    const app = httpApp({ createBatch }, { apiKeys, onRefused: (refusal) => void refusals.push(refusal) });
    const payload = { transactions: [{}, {}] };
    const response = await app.inject({ method: "POST", url: "/api/v1/tx/batch", headers, payload });
    expect(response.json().results).toMatchObject([{ status: 403, rule: "signers" }, { status: 202 }]);
    expect(refusals).toEqual([
      { code: "FORBIDDEN", rule: "signers", key: "mine", method: "POST", route: "/api/v1/tx/batch" },
    ]);
  });

  // protects [Attacks] src/domain/keys/principal.ts, src/adapters/http/routes/operations.ts
  it("that is limited to signers or chains may not read metrics", async () => {
    const metrics = vi.fn(async () => ({ contentType: "text/plain", body: `balance{signer="${SIGNER}"} 1\n` }));
    const asked = async (limits: Partial<ApiKey>) => {
      const app = httpApp({}, { metrics, apiKeys: [{ name: "mine", secret: SECRET, ...limits }] });
      return (await app.inject({ url: "/metrics", headers })).json();
    };
    expect(await asked({ signers: [RECIPIENT] })).toMatchObject({ status: 403, rule: "signers" });
    expect(await asked({ chains: [CHAIN_ID] })).toMatchObject({ status: 403, rule: "chains" });
    expect(metrics).not.toHaveBeenCalled();
  });
});
