import { Compile } from "typebox/compile";
import { describe, expect, it, vi } from "vitest";
import { NonceReservation } from "../../../src/contract/calls/nonces.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Reservation } from "../../../src/domain/transaction/reservations.ts";
import { httpApp } from "../../support/http-app.ts";
import { CHAIN_ID, SIGNER, SIGNER_EIP55, sampleCreated, sampleHash, sampleTxId } from "../../support/scripted-api.ts";

const ID = sampleTxId(77);
const PATH = `/api/v1/nonces/${ID}`;

function reservation(overrides: Partial<Reservation> = {}): Reservation {
  return {
    reservationId: ID,
    lane: { chainId: CHAIN_ID, signer: SIGNER },
    nonce: 8,
    requestId: "payout",
    owner: "wallet",
    ttlMs: 60_000,
    state: "RESERVED",
    expiresAt: new Date("2026-01-01T00:01:00.000Z"),
    txId: null,
    ...overrides,
  };
}

const seen = {
  reservationId: ID,
  chainId: CHAIN_ID,
  signer: SIGNER_EIP55,
  nonce: 8,
  requestId: "payout",
  owner: "wallet",
  state: "RESERVED",
  expiresAt: "2026-01-01T00:01:00.000Z",
  txId: null,
};

describe("POST /api/v1/nonces", () => {
  it("answers 201 with the reservation and its location, in the form of the contract's schema", async () => {
    const reserveNonce = vi.fn(async () => ({ outcome: "created" as const, reservation: reservation() }));
    const payload = { signer: SIGNER, ttl: "30s", requestId: "payout" };
    const response = await httpApp({ reserveNonce }).inject({ method: "POST", url: "/api/v1/nonces", payload });
    expect(response.statusCode).toBe(201);
    expect(response.headers.location).toBe(PATH);
    expect(response.json()).toEqual(seen);
    expect(Compile(NonceReservation).Check(response.json())).toBe(true);
    expect(reserveNonce).toHaveBeenCalledWith(payload);
  });

  it("answers 200 with the existing reservation if the request is repeated", async () => {
    const existing = { outcome: "existing" as const, reservation: reservation({ state: "EXPIRED" }) };
    const app = httpApp({ reserveNonce: async () => existing });
    const response = await app.inject({ method: "POST", url: "/api/v1/nonces", payload: { signer: SIGNER } });
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ ...seen, state: "EXPIRED" });
  });

  it.each([[], "text", 7, null])("refuses a body of %j, which is no object", async (payload) => {
    const app = httpApp();
    const response = await app.inject({
      ...{ method: "POST", url: "/api/v1/nonces", headers: { "content-type": "application/json" } },
      payload: JSON.stringify(payload),
    });
    expect(response.statusCode).toBe(400);
  });
});

describe("a nonce reservation over HTTP", () => {
  it("can be read by its id", async () => {
    const response = await httpApp({ reservation: async () => reservation() }).inject(PATH);
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual(seen);
    expect((await httpApp().inject(`${PATH}?x=1`)).statusCode).toBe(400);
  });

  it.each([
    ["submit", "submitReserved", { rawTransaction: "0x02aa" }],
    ["used", "markUsed", { txHash: sampleHash(1) }],
  ] as const)("is used by POST %s", async (path, method, payload) => {
    const use = vi.fn(async () => sampleCreated({ state: "TRACKING", nonce: 8 }));
    const response = await httpApp({ [method]: use }).inject({ method: "POST", url: `${PATH}/${path}`, payload });
    expect(response.statusCode).toBe(202);
    expect(response.headers.location).toBe(`/api/v1/tx/${sampleTxId(1)}`);
    expect(response.json()).toMatchObject({ txId: sampleTxId(1), nonce: 8, state: "TRACKING" });
    expect(use).toHaveBeenCalledWith(ID, payload);
  });

  it("is released by a POST without a body or with an empty one", async () => {
    const releaseNonce = vi.fn(async () => reservation({ state: "RELEASED" }));
    const app = httpApp({ releaseNonce });
    const release = (more: object) => app.inject({ method: "POST", url: `${PATH}/release`, ...more });
    expect((await release({})).json()).toEqual({ ...seen, state: "RELEASED" });
    expect((await release({ payload: {} })).statusCode).toBe(200);
    expect((await release({ payload: { force: true } })).json()).toMatchObject({ status: 400, path: "force" });
    expect(releaseNonce).toHaveBeenCalledTimes(2);
  });

  it("cannot be released if a transaction already uses the nonce", async () => {
    const over = new FencepostError("CONFLICT", "it is SUBMITTED", { txId: sampleTxId(5) });
    const app = httpApp({ releaseNonce: async () => Promise.reject(over) });
    const response = await app.inject({ method: "POST", url: `${PATH}/release` });
    expect(response.statusCode).toBe(409);
    expect(response.json()).toMatchObject({ code: "CONFLICT", txId: sampleTxId(5) });
  });

  it("accepts a raw transaction as large as a blob transaction", async () => {
    const submitReserved = vi.fn(async () => sampleCreated());
    const app = httpApp({ submitReserved });
    const submit = (bytes: number) =>
      app.inject({ method: "POST", url: `${PATH}/submit`, payload: { rawTransaction: `0x${"ab".repeat(bytes)}` } });
    expect((await submit(6 * 131_072)).statusCode).toBe(202);
    expect((await submit(12 * 131_072)).statusCode).toBe(413);
  });
});
