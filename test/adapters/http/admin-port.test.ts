import { afterEach, describe, expect, it } from "vitest";
import type { ApiKey, HttpServerOptions, PeerReceiver } from "../../../src/adapters/http/exchange/options.ts";
import { createHttpServer, type HttpServer } from "../../../src/adapters/http/server.ts";
import { ROUTE_SCOPES } from "../../../src/contract/scopes.ts";
import { unavailable } from "../../../src/domain/errors.ts";
import { SCOPES } from "../../../src/domain/keys/principal.ts";
import { httpOptions } from "../../support/http-app.ts";
import { SIGNER_EIP55, sampleTxId } from "../../support/scripted-api.ts";

const SECRET = "s".repeat(22);
const MIGHTY: ApiKey = { name: "root", secret: SECRET, scopes: SCOPES };
const refuse = () => Promise.reject(unavailable("not here"));
const peer: PeerReceiver = { admit: refuse, create: refuse, act: refuse, kill: refuse };
const OPERATORS = [
  ...["resubmit", "reprice", "replace", "resolve", "approve", "reject", "suspend", "resume"].map(
    (action) => `post /api/v1/tx/{txId}/${action}`,
  ),
  ...["approve", "reject"].map((action) => `post /api/v1/signatures/{signatureId}/${action}`),
  ...["suspend", "resume", "realign", "kill"].map((action) => `post /api/v1/signers/{signer}/${action}`),
  ...["post /api/v1/kill", "delete /api/v1/kill", "delete /api/v1/signers/{signer}/kill"],
  ...["get /api/v1/keys", "post /api/v1/keys", "delete /api/v1/keys/{name}", "get /metrics"],
  ...["post /api/v1/webhooks", "put /api/v1/webhooks/{subscriberId}", "delete /api/v1/webhooks/{subscriberId}"],
  ...["pause", "resume", "replay", "test", "rotate"].map((action) => `post /api/v1/webhooks/{subscriberId}/${action}`),
  ...["put /api/v1/policy", "put /api/v1/abis", "post /api/v1/notices/{noticeId}/acknowledge"],
];

let server: HttpServer;
afterEach(() => server.close());

async function serve(options: Partial<HttpServerOptions> = {}) {
  const files = new Map([["/", { contentType: "text/html", body: "<p>dashboard</p>" }]]);
  server = createHttpServer(httpOptions({}, { apiKeys: [MIGHTY], files, peer, ...options }));
  const { url: operators } = await server.listen("127.0.0.1", 0, "operators");
  const { url: callers } = await server.listenShared("127.0.0.1", 0, "callers");
  const ask = async (port: string, method: string, path: string, headers: Record<string, string> = {}) => {
    const body = method === "POST" ? { body: "{}" } : {};
    const type = { "content-type": "application/json", authorization: `Bearer ${SECRET}`, ...headers };
    const response = await fetch(`${port}${path}`, { method, headers: type, ...body });
    return { status: response.status, text: await response.text(), headers: response.headers };
  };
  return { operators, callers, ask };
}

function pathOf(route: string): readonly [string, string] {
  const [verb = "", pattern = ""] = route.split(" ");
  const path = pattern
    .replace("{txId}", sampleTxId(1))
    .replace("{reservationId}", sampleTxId(2))
    .replace("{noticeId}", sampleTxId(3))
    .replace("{signer}", SIGNER_EIP55)
    .replace("{name}", "shop");
  return [verb.toUpperCase(), path];
}

const isNoRoute = ({ status, text }: { readonly status: number; readonly text: string }): boolean =>
  status === 404 && text.includes("there is no route");

describe("a node with an admin port", () => {
  // protects [Attacks] src/adapters/http/app.ts, src/contract/scopes.ts, src/adapters/http/server.ts
  it("serves operators' routes only on the admin port", async () => {
    const { operators, callers, ask } = await serve();
    const hidden: string[] = [];
    for (const route of Object.keys(ROUTE_SCOPES)) {
      const [method, path] = pathOf(route);
      expect(isNoRoute(await ask(operators, method, path)), route).toBe(false);
      if (isNoRoute(await ask(callers, method, path))) hidden.push(route);
    }
    expect(hidden.sort()).toEqual(OPERATORS.toSorted());
  });

  it.each(["/internal/v1/creates", "/internal/v1/actions", "/internal/v1/kills"])(
    // protects [Attacks] src/adapters/http/app.ts, src/contract/scopes.ts, src/adapters/http/server.ts
    "serves requests of other nodes at %s only on the admin port",
    async (path) => {
      const { operators, callers, ask } = await serve();
      expect(isNoRoute(await ask(callers, "POST", path))).toBe(true);
      expect(isNoRoute(await ask(operators, "POST", path))).toBe(false);
    },
  );

  // protects [Attacks] src/adapters/http/app.ts, src/contract/scopes.ts, src/adapters/http/server.ts
  it("serves the dashboard on the admin port", async () => {
    const { operators, callers, ask } = await serve();
    expect((await ask(operators, "GET", "/")).text).toContain("dashboard");
    expect(isNoRoute(await ask(callers, "GET", "/"))).toBe(true);
    for (const path of ["/healthz", "/openapi.json", "/docs"]) {
      for (const port of [operators, callers]) expect((await ask(port, "GET", path)).status).toBe(200);
    }
  });

  // protects [Attacks] src/adapters/http/app.ts
  it("hides operators' routes on the main port", async () => {
    const { callers, ask } = await serve({ wire: { hosts: ["relay.example"], origins: [] } });
    for (const path of ["/metrics", "/api/v1/kill", "/internal/v1/kills", "/api/v1/keys/shop"]) {
      for (const method of ["GET", "HEAD", "POST", "DELETE", "OPTIONS", "PATCH"]) {
        const { status, headers } = await ask(callers, method, path, { authorization: "Bearer nobody" });
        expect([status, headers.get("allow")], `${method} ${path}`).toEqual([404, null]);
      }
    }
  });

  // protects [Attacks] src/adapters/http/app.ts, src/main/config/combinations.ts
  it("checks API key, Host and Origin on both ports", async () => {
    const { operators, ask } = await serve();
    expect((await ask(operators, "GET", "/metrics", { authorization: "Bearer nobody" })).status).toBe(401);
    const foreign = await ask(operators, "POST", "/api/v1/kill", { origin: "https://elsewhere.example" });
    expect(JSON.parse(foreign.text)).toMatchObject({ status: 403, rule: "origin" });
  });

  it("serves all routes on one port if no admin port is configured", async () => {
    server = createHttpServer(httpOptions({}, { apiKeys: [MIGHTY] }));
    const { url } = await server.listen("127.0.0.1", 0);
    const authorization = `Bearer ${SECRET}`;
    expect((await fetch(`${url}/metrics`, { headers: { authorization } })).status).toBe(200);
  });
});
