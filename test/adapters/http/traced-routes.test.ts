/**
 * Tests that a create runs within the trace that the request's header names. A real socket is used, because its events
 * belong to no trace.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { afterEach, describe, expect, it } from "vitest";
import { httpApp } from "../../support/http-app.ts";
import { RECIPIENT_EIP55, SIGNER_EIP55, sampleCreated } from "../../support/scripted-api.ts";

const TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const intent = { signer: SIGNER_EIP55, payload: { to: RECIPIENT_EIP55, data: `0x${"ab".repeat(60_000)}` } };

let close: () => Promise<unknown> = async () => undefined;
afterEach(() => close());

/** A node that records within which trace each create was called. */
async function listen(isTracing: boolean) {
  const current = new AsyncLocalStorage<unknown>();
  const traces: unknown[] = [];
  const create = async () => {
    await Promise.resolve();
    traces.push(current.getStore());
    return sampleCreated();
  };
  const within = (traceparent: unknown, handle: () => void): void => current.run(traceparent, handle);
  const api = { create, createBatch: async () => [await create()] };
  const app = httpApp(api, isTracing ? { within } : {});
  close = () => app.close();
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  const post = (path: string, body: unknown, traceparent: string | null = TRACEPARENT) => {
    const headers = { "content-type": "application/json", ...(traceparent === null ? {} : { traceparent }) };
    return fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  };
  return { traces, post };
}

describe("the trace context of an HTTP request", () => {
  it("is active for a create and for a batch", async () => {
    const { traces, post } = await listen(true);
    expect((await post("/api/v1/tx", intent)).status).toBe(202);
    expect((await post("/api/v1/tx/batch", { transactions: [intent] })).status).toBe(200);
    expect(traces).toEqual([TRACEPARENT, TRACEPARENT]);
  });

  it("is not mixed up between parallel requests", async () => {
    const { traces, post } = await listen(true);
    const headers = Array.from({ length: 8 }, (_, n) => (n % 2 === 0 ? TRACEPARENT : null));
    await Promise.all(headers.map((each) => post("/api/v1/tx", intent, each)));
    expect(traces.filter((each) => each === TRACEPARENT)).toHaveLength(4);
    expect(traces.filter((each) => each === undefined)).toHaveLength(4);
  });

  it("is not read if tracing is off", async () => {
    const { traces, post } = await listen(false);
    expect((await post("/api/v1/tx", intent)).status).toBe(202);
    expect(traces).toEqual([undefined]);
  });
});
