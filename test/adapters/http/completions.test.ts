import { describe, expect, it, vi } from "vitest";
import type { CompletionsPage, CompletionsQuery } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { httpApp } from "../../support/http-app.ts";
import { CHAIN_ID, SIGNER_EIP55, sampleCompletion, sampleHash, sampleTxId } from "../../support/scripted-api.ts";

const page: CompletionsPage = {
  epoch: 2,
  items: [sampleCompletion({ seq: 8 }), sampleCompletion({ seq: 9, state: "REORGED", settled: false, txHash: null })],
  next: 9,
};

function feed(answer: CompletionsPage = page) {
  return vi.fn((_: CompletionsQuery) => Promise.resolve(answer));
}

describe("GET /api/v1/tx/completions", () => {
  it("returns a page in the form of the contract's schema", async () => {
    const completions = feed();
    const response = await httpApp({ completions }).inject("/api/v1/tx/completions?after=7&epoch=2&limit=2");
    expect(response.statusCode).toBe(200);
    expect(completions).toHaveBeenCalledExactlyOnceWith({ after: 7, epoch: 2, limit: 2 });
    const body = response.json();
    expect(body).toMatchObject({ epoch: 2, next: 9 });
    expect(body.items[0]).toEqual({
      seq: 8,
      epoch: 1,
      txId: sampleTxId(1),
      chainId: CHAIN_ID,
      signer: SIGNER_EIP55,
      requestId: "order-42",
      nonce: 7,
      state: "CONFIRMED",
      subState: null,
      settled: true,
      txHash: sampleHash(1),
      at: "2026-01-01T00:00:00.000Z",
    });
    expect(body.items[1]).toMatchObject({ seq: 9, state: "REORGED", settled: false, txHash: null });
  });

  it("starts at the beginning by default", async () => {
    const completions = feed();
    await httpApp({ completions }).inject("/api/v1/tx/completions");
    expect(completions).toHaveBeenCalledExactlyOnceWith({ after: 0 });
  });

  it.each([
    ["30", 30_000],
    ["0.25", 250],
  ])("waits up to %s seconds, or until the caller disconnects", async (wait, waitMs) => {
    const completions = feed();
    await httpApp({ completions }).inject(`/api/v1/tx/completions?wait=${wait}`);
    expect(completions).toHaveBeenCalledExactlyOnceWith({ after: 0, waitMs, signal: expect.any(AbortSignal) });
  });

  it("answers at once without the parameter wait", async () => {
    const completions = feed();
    await httpApp({ completions }).inject("/api/v1/tx/completions?wait=0");
    expect(completions).toHaveBeenCalledExactlyOnceWith({ after: 0 });
  });

  it("reports a changed epoch and the position to continue at", async () => {
    const completions = () =>
      Promise.reject(new FencepostError("EPOCH_CHANGED", "the feed is in epoch 3", { epoch: 3, resumeAfter: 1000 }));
    for (const wait of ["", "&wait=5"]) {
      const response = await httpApp({ completions }).inject(`/api/v1/tx/completions?epoch=2${wait}`);
      expect(response.statusCode).toBe(409);
      expect(response.json()).toMatchObject({ code: "EPOCH_CHANGED", epoch: 3, resumeAfter: 1000 });
    }
  });

  it("reports that the feed was truncated", async () => {
    const completions = () =>
      Promise.reject(new FencepostError("FEED_TRUNCATED", "kept from 500", { resumeAfter: 500 }));
    const response = await httpApp({ completions }).inject("/api/v1/tx/completions?after=1");
    expect(response.statusCode).toBe(410);
    expect(response.json()).toMatchObject({ code: "FEED_TRUNCATED", resumeAfter: 500 });
  });
});
