import { describe, expect, it } from "vitest";
import { httpApp } from "../../support/http-app.ts";
import { CHAIN_ID, SIGNER, SIGNER_EIP55, sampleTransaction } from "../../support/scripted-api.ts";

describe("GET /history and GET /costs", () => {
  it("return wei as digits and addresses with their checksum", async () => {
    const asked: unknown[] = [];
    const app = httpApp({
      history: async (query) => {
        asked.push(query);
        return {
          ...{ from: new Date(0), to: new Date(60_000), stepSeconds: 60 },
          buckets: [
            {
              ...{ at: new Date(0), created: 1, completed: 1, failed: 0, stuck: 0, reorged: 0, fees: 2n ** 70n },
              ...{ finalityMs: null, baseFee: { avg: 5n, max: 7n }, offered: null, troubles: [] },
            },
          ],
          keys: [{ key: null, chainId: CHAIN_ID, completed: 1, fees: 1n }],
          signers: [{ signer: SIGNER, name: null, chainId: CHAIN_ID, completed: 1, fees: 1n }],
        };
      },
    });
    const response = await app.inject("/api/v1/history?step=60&from=1970-01-01T00:00:00Z");
    expect(asked).toEqual([{ step: 60, from: "1970-01-01T00:00:00Z" }]);
    expect(response.json()).toMatchObject({
      buckets: [
        { at: "1970-01-01T00:00:00.000Z", fees: `${2n ** 70n}`, baseFee: { avg: "5", max: "7" }, offered: null },
      ],
      signers: [{ signer: SIGNER_EIP55, name: null, fees: "1" }],
    });
  });

  it.each(["history?step=59", "history?step=x", "costs?by=colour", "costs?days=3", "tx?createdAfter=1&limit=0"])(
    "refuse a query that the contract does not allow: %s",
    async (path) => {
      const response = await httpApp({}).inject(`/api/v1/${path}`);
      expect([response.statusCode, response.json().code]).toEqual([400, "INVALID_REQUEST"]);
    },
  );
});

describe("GET /tx", () => {
  it("passes the range of time on, and returns calls in words", async () => {
    const asked: unknown[] = [];
    const decoded = { contract: "Payouts", name: "pay", args: [{ name: "to", value: SIGNER_EIP55 }] };
    const app = httpApp({
      transactions: async (query) => {
        asked.push(query);
        return { items: [sampleTransaction({ decoded })], next: null };
      },
    });
    const range = "createdAfter=2026-01-01T00:00:00Z&createdBefore=2026-01-02T00:00:00Z";
    const response = await app.inject(`/api/v1/tx?${range}`);
    expect(asked).toEqual([{ createdAfter: "2026-01-01T00:00:00Z", createdBefore: "2026-01-02T00:00:00Z" }]);
    expect(response.json().items[0].decoded).toEqual(decoded);
  });
});
