import { describe, expect, it } from "vitest";
import { createHttpApp } from "../../../src/adapters/http/app.ts";
import type { AttentionQuery, AttentionView } from "../../../src/application/api.ts";
import { NOWHERE } from "../../../src/domain/troubles/rows.ts";
import { httpApp, httpOptions } from "../../support/http-app.ts";
import { SIGNER, SIGNER_EIP55, sampleTxId, scriptedApi } from "../../support/scripted-api.ts";

const view: AttentionView = {
  revision: "r1",
  asOf: new Date("2026-11-02T09:30:00.000Z"),
  items: [
    {
      ...NOWHERE,
      ...{
        id: "tx:1",
        severity: "ERROR",
        code: "STUCK",
        sentence: "It is stuck.",
        signer: SIGNER,
        chainId: 5,
        waiting: 2,
      },
      txId: sampleTxId(1),
      actions: [{ action: "reprice", label: "Offer more", method: "POST", path: "/p", body: { chainId: 5 } }],
    },
  ],
  more: 3,
  past: [{ ...NOWHERE, id: "alert:1", severity: "CRITICAL", code: "DEEP_REORG", sentence: "Gone.", over: true }],
};

describe("GET /api/v1/attention", () => {
  it("returns each problem in JSON, with a checksummed signer", async () => {
    const app = httpApp({ attention: async () => view });
    const { json, statusCode } = await app.inject("/api/v1/attention");
    expect(statusCode).toBe(200);
    expect(json()).toMatchObject({
      revision: "r1",
      more: 3,
      items: [{ signer: SIGNER_EIP55, since: null, waiting: 2 }],
      past: [{ code: "DEEP_REORG", waiting: 0 }],
    });
    expect(json().items[0].actions).toEqual(view.items[0]?.actions);
  });

  it("waits for changes only if the caller names a revision", async () => {
    const asked: AttentionQuery[] = [];
    const app = httpApp({
      attention: async (query = {}) => {
        asked.push(query);
        return view;
      },
    });
    await app.inject("/api/v1/attention?wait=5");
    await app.inject("/api/v1/attention?wait=2.5&revision=r0&limit=7&chainId=5");
    expect(asked[0]?.waitMs).toBeUndefined();
    expect(asked[1]).toMatchObject({ revision: "r0", waitMs: 2_500, limit: 7, chainId: 5 });
    expect(asked[1]?.signal?.aborted).toBe(false);
  });

  it.each(["wait=31", "limit=0", "limit=501", "chainId=x", "revison=1", `revision=${"x".repeat(65)}`])(
    "refuses the query ?%s",
    async (query) => {
      const app = httpApp({ attention: async () => view });
      expect((await app.inject(`/api/v1/attention?${query}`)).statusCode).toBe(400);
    },
  );

  it("answers waiting long polls with the current data when the node drains", async () => {
    const attention = ({ signal }: AttentionQuery = {}) =>
      new Promise<AttentionView>((resolve) => {
        if (signal?.aborted === true) resolve(view);
        signal?.addEventListener("abort", () => resolve(view));
      });
    const { app, longPolls } = createHttpApp(httpOptions({}, { api: scriptedApi({ attention }) }));
    const waiting = app.inject("/api/v1/attention?wait=30&revision=r1");
    await new Promise((resolve) => setImmediate(resolve));
    longPolls.drain();
    expect((await waiting).json()).toMatchObject({ revision: "r1" });
  });
});

describe("GET /api/v1/search", () => {
  it.each(["", "?q=", `?q=${"x".repeat(256)}`, "?q=%00", "?q=a&limit=51"])(
    "refuses the query string %s",
    async (query) => {
      const app = httpApp({ search: async () => [] });
      expect((await app.inject(`/api/v1/search${query}`)).statusCode).toBe(400);
    },
  );
});
