import { Compile } from "typebox/compile";
import { describe, expect, it, vi } from "vitest";
import type { ResponseReport } from "../../../../src/adapters/http/exchange/options.ts";
import { Problem } from "../../../../src/contract/schemas/problem.ts";
import { ERROR_CATALOGUE, type ErrorCode, type ErrorExtras, FencepostError } from "../../../../src/domain/errors.ts";
import { httpApp } from "../../../support/http-app.ts";
import { sampleTxId } from "../../../support/scripted-api.ts";

const failing = (error: unknown, logger = { error: vi.fn() }) =>
  httpApp({ signers: () => Promise.reject(error) }, { logger }).inject("/api/v1/signers");

const ALL_EXTRAS: Required<ErrorExtras> = {
  path: "payload.to",
  hint: "did you mean `to`?",
  reason: "REVERT",
  revert: { name: null, message: null, data: "0x" },
  dependsOnPending: true,
  baseFeePerGas: "30000000000",
  retryAfterSeconds: 1.2,
  ownerUrl: "http://10.0.0.7:3000",
  rule: "origin",
  limit: 16,
  txId: sampleTxId(1),
  txHash: `0x${"1".repeat(64)}`,
  nextNonce: 7,
  outcome: "unknown",
  epoch: 2,
  resumeAfter: 17,
};

describe("problem documents (error responses)", () => {
  it.each(Object.keys(ERROR_CATALOGUE) as ErrorCode[])(
    "have the status, title and schema of their code: %s",
    async (code) => {
      const response = await failing(new FencepostError(code, "what happened", ALL_EXTRAS));
      const { status, title } = ERROR_CATALOGUE[code];
      expect(response.statusCode).toBe(status);
      expect(response.headers["content-type"]).toBe("application/problem+json; charset=utf-8");
      expect(response.json()).toEqual({
        type: `/docs#${code}`,
        title,
        status,
        code,
        detail: "what happened",
        ...ALL_EXTRAS,
      });
      expect([...Compile(Problem).Errors(response.json())]).toEqual([]);
    },
  );

  it("have Retry-After in whole seconds", async () => {
    const response = await failing(new FencepostError("QUEUE_FULL", "full", { retryAfterSeconds: 1.2 }));
    expect(response.headers["retry-after"]).toBe("2");
  });

  it("have the lane owner's URL in a header", async () => {
    const ownerUrl = "http://10.0.0.7:3000";
    const response = await failing(new FencepostError("NOT_LEADER", "elsewhere", { ownerUrl }));
    expect(response.headers["fencepost-owner"]).toBe(ownerUrl);
    expect(response.json()).toMatchObject({ ownerUrl });
  });

  it.each([[null], ["http://a\r\nset-cookie: x=1"], [""]])(
    "have no header for the lane owner's URL if that URL is %j",
    async (ownerUrl) => {
      const response = await failing(new FencepostError("NOT_LEADER", "elsewhere", { ownerUrl }));
      expect(response.statusCode).toBe(409);
      expect(response.headers).not.toHaveProperty("fencepost-owner");
      expect(response.headers).not.toHaveProperty("set-cookie");
    },
  );

  it.each([
    ["an Error", new Error("password=hunter2 at 10.0.0.1")],
    ["an error with a status", Object.assign(new Error("hunter2"), { statusCode: 404, code: "22P02" })],
    ["a string", "hunter2"],
    ["undefined", undefined],
    ["null", null],
  ])("hide %s behind the code INTERNAL, and the error is logged", async (_, thrown) => {
    const logger = { error: vi.fn() };
    const response = await failing(thrown, logger);
    expect(response.statusCode).toBe(500);
    expect(response.json()).toMatchObject({ code: "INTERNAL", status: 500 });
    expect(response.body).not.toContain("hunter2");
    expect(logger.error).toHaveBeenCalledOnce();
    expect(logger.error.mock.calls[0]?.[0]).toMatchObject({ method: "GET", route: "/api/v1/signers" });
  });

  it("are not logged if the caller made the error", async () => {
    const logger = { error: vi.fn() };
    await failing(new FencepostError("NOT_FOUND", "no"), logger);
    await httpApp({}, { logger }).inject("/nothing");
    expect(logger.error).not.toHaveBeenCalled();
  });
});

describe("metrics of HTTP responses", () => {
  it("name the route by its pattern, so that the number of label values stays bounded", async () => {
    const reports: ResponseReport[] = [];
    const app = httpApp(
      { signers: () => Promise.resolve({ items: [], next: null }) },
      { onResponse: (report) => reports.push(report) },
    );
    await app.inject("/api/v1/signers?x=1");
    await app.inject(`/api/v1/tx/${sampleTxId(1)}`);
    await app.inject("/some/path/nobody/knows");
    await app.inject({ method: "DELETE", url: "/api/v1/tx" });
    expect(reports.map(({ method, route, status }) => [method, route, status])).toEqual([
      ["GET", "/api/v1/signers", 400],
      ["GET", "/api/v1/tx/:txId", 500],
      ["GET", "unmatched", 404],
      ["DELETE", "/api/v1/tx", 405],
    ]);
    for (const { durationMs } of reports) expect(durationMs).toBeGreaterThanOrEqual(0);
  });
});
