import { describe, expect, it, vi } from "vitest";
import type { Created, CreateRequest } from "../../../src/application/api.ts";
import { FencepostError, invalid } from "../../../src/domain/errors.ts";
import { httpApp } from "../../support/http-app.ts";
import {
  CHAIN_ID,
  RECIPIENT_EIP55,
  SIGNER_EIP55,
  sampleChecksum,
  sampleCreated,
  sampleTxId,
} from "../../support/scripted-api.ts";

const intent = { signer: SIGNER_EIP55, requestId: "order-42", payload: { to: RECIPIENT_EIP55, value: "1" } };

function creator(answer: Created | FencepostError = sampleCreated()) {
  return vi.fn((_: CreateRequest) =>
    answer instanceof FencepostError ? Promise.reject(answer) : Promise.resolve(answer),
  );
}

describe("POST /api/v1/tx", () => {
  it("answers 202 with the transaction and its location", async () => {
    const create = creator();
    const response = await httpApp({ create }).inject({ method: "POST", url: "/api/v1/tx", payload: intent });
    expect(response.statusCode).toBe(202);
    expect(response.headers.location).toBe(`/api/v1/tx/${sampleTxId(1)}`);
    expect(response.headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(response.json()).toEqual({
      txId: sampleTxId(1),
      chainId: CHAIN_ID,
      signer: SIGNER_EIP55,
      nonce: 7,
      state: "ALLOCATED",
      requestId: "order-42",
    });
    expect(create).toHaveBeenCalledExactlyOnceWith(intent);
  });

  it("passes the API key's name to the create stage, for a single transaction and for a batch", async () => {
    const create = creator();
    const createBatch = vi.fn(async () => [sampleCreated()]);
    const app = httpApp({ create, createBatch }, { apiKeys: [{ name: "shop", secret: "correct-horse" }] });
    const headers = { authorization: "Bearer correct-horse" };
    await app.inject({ method: "POST", url: "/api/v1/tx", headers, payload: intent });
    expect(create).toHaveBeenCalledExactlyOnceWith(intent, "shop", expect.anything());
    await app.inject({ method: "POST", url: "/api/v1/tx/batch", headers, payload: { transactions: [intent] } });
    expect(createBatch).toHaveBeenCalledExactlyOnceWith([intent], "shop", expect.anything());
  });

  it("answers 200 if the request was accepted before", async () => {
    const create = creator(sampleCreated({ outcome: "existing", state: "CONFIRMED" }));
    const response = await httpApp({ create }).inject({ method: "POST", url: "/api/v1/tx", payload: intent });
    expect(response.statusCode).toBe(200);
    expect(response.headers.location).toBe(`/api/v1/tx/${sampleTxId(1)}`);
    expect(response.json()).toMatchObject({ state: "CONFIRMED" });
  });

  it("returns null for the nonce and the request id if there are none", async () => {
    const create = creator(sampleCreated({ nonce: null, requestId: null, state: "CREATED" }));
    const response = await httpApp({ create }).inject({ method: "POST", url: "/api/v1/tx", payload: intent });
    expect(response.json()).toMatchObject({ nonce: null, requestId: null, state: "CREATED" });
  });

  it("returns large nonces and unusual request ids unchanged", async () => {
    const create = creator(sampleCreated({ nonce: Number.MAX_SAFE_INTEGER, requestId: 'a"b\\c\u2028ünï' }));
    const response = await httpApp({ create }).inject({ method: "POST", url: "/api/v1/tx", payload: intent });
    expect(response.json()).toMatchObject({ nonce: Number.MAX_SAFE_INTEGER, requestId: 'a"b\\c\u2028ünï' });
  });

  it("passes unknown fields on to the create stage, which refuses them by name", async () => {
    const create = creator(invalid("colour", "is not a field"));
    const response = await httpApp({ create }).inject({
      method: "POST",
      url: "/api/v1/tx",
      payload: { ...intent, colour: "red" },
    });
    expect(create).toHaveBeenCalledWith({ ...intent, colour: "red" });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path: "colour" });
  });

  it("computes each signer's checksum address once for all responses", async () => {
    const checksum = vi.fn(sampleChecksum);
    const app = httpApp({ create: creator() }, { checksum });
    for (let i = 0; i < 5; i++) await app.inject({ method: "POST", url: "/api/v1/tx", payload: intent });
    expect(checksum).toHaveBeenCalledTimes(1);
  });

  it("answers 100 concurrent requests, each with its own transaction", async () => {
    const app = httpApp({
      create: async ({ requestId }) => {
        await Promise.resolve();
        return sampleCreated({ requestId: String(requestId), txId: sampleTxId(Number(requestId)) });
      },
    });
    const responses = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        app.inject({ method: "POST", url: "/api/v1/tx", payload: { ...intent, requestId: String(n) } }),
      ),
    );
    expect(responses.map((response) => response.json().txId)).toEqual(
      Array.from({ length: 100 }, (_, n) => sampleTxId(n)),
    );
  });
});

describe("the Idempotency-Key header", () => {
  const send = (create: (request: CreateRequest) => Promise<Created>, payload: object, key: string) =>
    httpApp({ create }).inject({ method: "POST", url: "/api/v1/tx", payload, headers: { "idempotency-key": key } });

  it("is used as the request id if none is given", async () => {
    const create = creator();
    const { requestId: _, ...withoutId } = intent;
    expect((await send(create, withoutId, "order-42")).statusCode).toBe(202);
    expect(create).toHaveBeenCalledExactlyOnceWith({ ...withoutId, requestId: "order-42" });
  });

  it("may be equal to the request id of the body", async () => {
    const create = creator();
    expect((await send(create, intent, "order-42")).statusCode).toBe(202);
    expect(create).toHaveBeenCalledExactlyOnceWith(intent);
  });

  it.each([
    ["another id", "order-43"],
    ["another casing", "Order-42"],
    ["an empty one", ""],
  ])("must not contradict the request id of the body: %s", async (_, key) => {
    const create = creator();
    const response = await send(create, intent, key);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path: "idempotency-key" });
    expect(create).not.toHaveBeenCalled();
  });

  it("is refused if the body's request id is null", async () => {
    const create = creator();
    expect((await send(create, { ...intent, requestId: null }, "order-42")).statusCode).toBe(400);
    expect(create).not.toHaveBeenCalled();
  });

  it("must be ASCII, because the encoding of other bytes is not defined", async () => {
    const response = await send(creator(), intent, "ord\u00e9r");
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ path: "idempotency-key" });
  });
});

describe("POST /api/v1/tx/batch", () => {
  const post = (
    createBatch: (requests: readonly CreateRequest[]) => Promise<readonly (Created | FencepostError)[]>,
    payload: unknown,
  ) => httpApp({ createBatch }).inject({ method: "POST", url: "/api/v1/tx/batch", payload: payload as object });

  const createAll = vi.fn((requests: readonly CreateRequest[]) =>
    Promise.resolve(
      requests.map(({ requestId }) =>
        sampleCreated({ requestId: String(requestId), txId: sampleTxId(Number(requestId)) }),
      ),
    ),
  );
  const items = (count: number) => Array.from({ length: count }, (_, n) => ({ ...intent, requestId: String(n) }));

  it("returns a result for each item, in order", async () => {
    const response = await post(createAll, { transactions: items(1000) });
    expect(response.statusCode).toBe(200);
    const { results } = response.json();
    expect(results).toHaveLength(1000);
    expect(results[999]).toEqual({
      status: 202,
      txId: sampleTxId(999),
      chainId: CHAIN_ID,
      signer: SIGNER_EIP55,
      nonce: 7,
      state: "ALLOCATED",
      requestId: "999",
    });
  });

  it("returns created, existing and refused items in one response", async () => {
    const answers = [
      sampleCreated(),
      new FencepostError("REQUEST_ID_REUSED", "order-42 belongs to another payload"),
      sampleCreated({ outcome: "existing" }),
      new FencepostError("SUBMISSION_REJECTED", "reverted", {
        reason: "REVERT",
        revert: { name: "Error", message: "no", data: "0x08c379a0" },
      }),
    ];
    const response = await post(() => Promise.resolve(answers), { transactions: items(4) });
    const { results } = response.json();
    expect(results.map((result: { status: number }) => result.status)).toEqual([202, 409, 200, 422]);
    expect(results[1]).toEqual({
      type: "/docs#REQUEST_ID_REUSED",
      title: "The request id belongs to another payload",
      status: 409,
      code: "REQUEST_ID_REUSED",
      detail: "order-42 belongs to another payload",
    });
    expect(results[3]).toMatchObject({ reason: "REVERT", revert: { name: "Error", message: "no" } });
  });

  it("answers an empty batch without calling the create stage", async () => {
    const createBatch = vi.fn();
    const response = await post(createBatch, { transactions: [] });
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ results: [] });
    expect(createBatch).not.toHaveBeenCalled();
  });

  it("returns 400 for items that are no objects, and creates the others", async () => {
    createAll.mockClear();
    const response = await post(createAll, { transactions: [items(1)[0], null, [intent], "x", 7, items(2)[1]] });
    const { results } = response.json();
    expect(results.map((result: { status: number }) => result.status)).toEqual([202, 400, 400, 400, 400, 202]);
    expect(results[5].txId).toBe(sampleTxId(1));
    expect(createAll).toHaveBeenCalledExactlyOnceWith(items(2));
  });

  it("returns 413 for an item over 256 KiB", async () => {
    createAll.mockClear();
    const fat = { ...intent, requestId: "1", payload: { to: RECIPIENT_EIP55, data: `0x${"ab".repeat(131_072)}` } };
    const response = await post(createAll, { transactions: [items(1)[0], fat, { ...intent, requestId: "2" }] });
    expect(response.statusCode).toBe(200);
    const { results } = response.json();
    expect(results.map((result: { status: number }) => result.status)).toEqual([202, 413, 202]);
    expect(results[1]).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    expect(results[2].txId).toBe(sampleTxId(2));
  });

  it("measures the size of an item in bytes, not in characters", async () => {
    const wide = { ...intent, requestId: "0", metadata: { note: "€".repeat(90_000) } };
    const { results } = (await post(createAll, { transactions: [wide] })).json();
    expect(results[0].status).toBe(413);
  });

  it.each([
    ["1,001 items", { transactions: items(1001) }, "transactions"],
    ["no transactions", {}, "transactions"],
    ["an object for the array", { transactions: { 0: intent } }, "transactions"],
    ["null for the array", { transactions: null }, "transactions"],
    ["an unknown field", { transactions: [], atomic: true }, "atomic"],
    ["the bare array", items(1), ""],
  ])("refuses %s", async (_, payload, path) => {
    const createBatch = vi.fn();
    const response = await post(createBatch, payload);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST", path });
    expect(createBatch).not.toHaveBeenCalled();
  });

  it("refuses an Idempotency-Key, which cannot apply to every item", async () => {
    const response = await httpApp({ createBatch: createAll }).inject({
      method: "POST",
      url: "/api/v1/tx/batch",
      payload: { transactions: items(1) },
      headers: { "idempotency-key": "once" },
    });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ path: "idempotency-key" });
  });

  it("fails with 500 if the create stage returns fewer results than items", async () => {
    const error = vi.fn();
    const app = httpApp({ createBatch: () => Promise.resolve([sampleCreated()]) }, { logger: { error } });
    const response = await app.inject({ method: "POST", url: "/api/v1/tx/batch", payload: { transactions: items(2) } });
    expect(response.statusCode).toBe(500);
    expect(error).toHaveBeenCalledOnce();
  });
});
