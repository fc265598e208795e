import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it, vi } from "vitest";
import { createHttpApp } from "../../../src/adapters/http/app.ts";
import { ERROR_CATALOGUE, FencepostError } from "../../../src/domain/errors.ts";
import { httpApp, httpOptions } from "../../support/http-app.ts";

const ready = {
  ready: true,
  database: true,
  chains: [
    { chainId: 31337, reachable: true, head: 12, headSince: "2026-01-01T00:00:00.000Z", signersAway: 0, troubles: [] },
  ],
  draining: false,
};

describe("/healthz", () => {
  it("answers without calling database and chain", async () => {
    const response = await httpApp().inject("/healthz");
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ status: "ok", version: "1.2.3" });
  });

  it("answers HEAD, which load balancers send", async () => {
    expect((await httpApp().inject({ method: "HEAD", url: "/healthz" })).statusCode).toBe(200);
  });
});

describe("/readyz", () => {
  it("is 200 if database and chains are available", async () => {
    const response = await httpApp({ readiness: () => Promise.resolve(ready) }).inject("/readyz");
    expect(response.statusCode).toBe(200);
    expect(response.headers["cache-control"]).toBe("no-store");
    expect(response.json()).toEqual(ready);
  });

  it.each([
    ["the database", { ...ready, ready: false, database: false }],
    [
      "a chain",
      {
        ...ready,
        ready: false,
        chains: [{ chainId: 31337, reachable: false, head: null, headSince: null, signersAway: 0, troubles: [] }],
      },
    ],
    ["a node that is shutting down", { ...ready, ready: false, draining: true }],
  ])("is 503 and names the missing part: %s", async (_, readiness) => {
    const response = await httpApp({ readiness: () => Promise.resolve(readiness) }).inject("/readyz");
    expect(response.statusCode).toBe(503);
    expect(response.json()).toEqual(readiness);
  });

  it("is 503 while the node drains, even if database and chains are available", async () => {
    const { app, longPolls } = createHttpApp(httpOptions({ readiness: () => Promise.resolve(ready) }));
    longPolls.drain();
    const response = await app.inject("/readyz");
    expect(response.statusCode).toBe(503);
    expect(response.headers.connection).toBe("close");
    expect(response.json()).toEqual({ ...ready, ready: false, draining: true });
  });

  it("reports on one chain with ?chain=", async () => {
    const readiness = vi.fn((_?: number) => Promise.resolve(ready));
    const app = httpApp({ readiness });
    expect((await app.inject("/readyz?chain=31337")).statusCode).toBe(200);
    expect((await app.inject("/readyz")).statusCode).toBe(200);
    expect(readiness.mock.calls).toEqual([[31337], [undefined]]);
  });

  it("answers with a problem document if ?chain= names an unknown chain or is no chain id", async () => {
    const unknown = new FencepostError("UNKNOWN_CHAIN", "chain 5 is not configured on this node");
    const app = httpApp({ readiness: () => Promise.reject(unknown) });
    const response = await app.inject("/readyz?chain=5");
    expect(response.statusCode).toBe(422);
    expect(response.headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect(response.json()).toMatchObject({ code: "UNKNOWN_CHAIN", detail: expect.stringContaining("chain 5") });
    for (const query of ["chain=mainnet", "chain=0", "chain=", "chain=1&chain=2", "chian=1"]) {
      expect((await app.inject(`/readyz?${query}`)).json(), query).toMatchObject({ code: "INVALID_REQUEST" });
    }
  });

  it("is 503, not 500, when the readiness check itself fails", async () => {
    const logger = { error: vi.fn() };
    const app = httpApp({ readiness: () => Promise.reject(new Error("boom")) }, { logger });
    const response = await app.inject("/readyz");
    expect(response.statusCode).toBe(503);
    expect(response.json()).toEqual({ ready: false, database: false, chains: [], draining: false });
    expect(logger.error).toHaveBeenCalledOnce();
  });
});

describe("/metrics", () => {
  it("returns the text of the metrics registry", async () => {
    const response = await httpApp().inject("/metrics");
    expect(response.statusCode).toBe(200);
    expect(response.headers["content-type"]).toBe("text/plain; version=0.0.4");
    expect(response.body).toBe("fencepost_up 1\n");
  });

  it("answers with a 500 problem document if the registry fails", async () => {
    const app = httpApp({}, { metrics: () => Promise.reject(new Error("boom")) });
    const response = await app.inject("/metrics");
    expect(response.statusCode).toBe(500);
    expect(response.json()).toMatchObject({ code: "INTERNAL" });
  });
});

describe("/openapi.json and /docs", () => {
  it("serve the API document of this version", async () => {
    const response = await httpApp().inject("/openapi.json");
    expect(response.headers["content-type"]).toContain("application/json");
    expect(response.json()).toMatchObject({ openapi: "3.1.0", info: { version: "1.2.3" } });
  });

  it("have an anchor for each error code, which problem documents link to", async () => {
    const { body } = await httpApp().inject("/docs");
    for (const code of Object.keys(ERROR_CATALOGUE)) expect(body).toContain(`id="${code}"`);
  });

  it("show every route, and have no broken link", async () => {
    const app = httpApp();
    const { body } = await app.inject("/docs");
    const { paths } = (await app.inject("/openapi.json")).json();
    for (const path of Object.keys(paths)) expect(body).toContain(`<code>${path}</code>`);
    const ids = new Set([...body.matchAll(/ id="([^"]+)"/g)].map((match) => match[1]));
    const links = [...body.matchAll(/href="#([^"]+)"/g)].map((match) => match[1] ?? "");
    expect(links.length).toBeGreaterThan(20);
    expect(links.filter((link) => !ids.has(link))).toEqual([]);
  });

  it("load nothing from other hosts, and run no script", async () => {
    const response = await httpApp().inject("/docs");
    expect(response.headers["content-security-policy"]).toContain("default-src 'none'");
    expect(response.body).not.toMatch(/<script|(src|href)="(https?:)?\/\//);
    const style = await httpApp().inject("/docs/style.css");
    expect(style.headers["content-type"]).toBe("text/css; charset=utf-8");
    expect(style.body).not.toMatch(/url\(|@import/);
  });
});

describe("static files", () => {
  const files = new Map([
    ["/", { contentType: "text/html; charset=utf-8", body: "<!doctype html>" }],
    ["/dashboard/logo.bin", { contentType: "application/octet-stream", body: Buffer.from([0, 255]) }],
  ]);

  it("are served unchanged, with a strict CSP", async () => {
    const response = await httpApp({}, { files }).inject("/");
    expect(response.body).toBe("<!doctype html>");
    expect(response.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "x-content-type-options": "nosniff",
      "cache-control": "no-cache",
    });
    const policy = String(response.headers["content-security-policy"]);
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain("unsafe");
    const binary = await httpApp({}, { files }).inject("/dashboard/logo.bin");
    expect(binary.rawPayload).toEqual(Buffer.from([0, 255]));
  });

  it("are answered with 304 if the caller already has them", async () => {
    const app = httpApp({}, { files });
    const { etag } = (await app.inject("/")).headers;
    const again = await app.inject({ url: "/", headers: { "if-none-match": String(etag) } });
    expect(again.statusCode).toBe(304);
    expect(again.body).toBe("");
    const stale = await app.inject({ url: "/", headers: { "if-none-match": '"other"' } });
    expect(stale.statusCode).toBe(200);
  });

  describe("with a compressed body", () => {
    const body = "export const many = 1;\n".repeat(100);
    const packed = new Map([["/x.js", { contentType: "text/javascript", body, gzip: gzipSync(body) }]]);
    const get = (headers: Record<string, string>) => httpApp({}, { files: packed }).inject({ url: "/x.js", headers });

    it.each(["gzip", "br, gzip;q=0.5", "GZIP", "*"])(
      "are compressed for a client that accepts %s",
      async (accepted) => {
        const { headers, rawPayload } = await get({ "accept-encoding": accepted });
        expect(headers).toMatchObject({ "content-encoding": "gzip", vary: "accept-encoding" });
        expect(Number(headers["content-length"])).toBeLessThan(body.length / 4);
        expect(gunzipSync(rawPayload).toString()).toBe(body);
        expect(String(headers["content-security-policy"])).toContain("script-src 'self'");
      },
    );

    it.each(["", "br", "identity", "gzip;q=0", "gzip; q=0, *"])(
      "are not compressed for a client that sends %j",
      async (accepted) => {
        const { headers, payload } = await get({ "accept-encoding": accepted });
        expect(headers["content-encoding"]).toBeUndefined();
        expect(headers.vary).toBe("accept-encoding");
        expect(payload).toBe(body);
      },
    );

    it("have another tag for each encoding, each answered with 304", async () => {
      const plain = String((await get({})).headers.etag);
      const gzipped = String((await get({ "accept-encoding": "gzip" })).headers.etag);
      expect(gzipped).not.toBe(plain);
      expect((await get({ "accept-encoding": "gzip", "if-none-match": gzipped })).statusCode).toBe(304);
      expect((await get({ "accept-encoding": "gzip", "if-none-match": plain })).statusCode).toBe(200);
      expect((await get({ "if-none-match": gzipped })).statusCode).toBe(200);
    });
  });

  it.each([["/dashboard"], ["/dashboard/"], ["/dashboard/%2e%2e/package.json"], ["/dashboard/nothing.js"]])(
    "are served only if they are in the list of files: %s is 404",
    async (url) => {
      expect((await httpApp({}, { files }).inject(url)).statusCode).toBe(404);
    },
  );
});
