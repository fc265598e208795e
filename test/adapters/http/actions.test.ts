import { describe, expect, it } from "vitest";
import type { ApiKey } from "../../../src/adapters/http/exchange/options.ts";
import type { LaneActionRequest, TransactionActionRequest } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { httpApp } from "../../support/http-app.ts";
import { SIGNER_EIP55, sampleHash, sampleSigner, sampleTransaction, sampleTxId } from "../../support/scripted-api.ts";

const KEYS: readonly ApiKey[] = [
  { name: "caller", secret: "s3cret-of-caller" },
  { name: "on-call", secret: "s3cret-of-on-call", scopes: ["operate"] },
];
const txId = sampleTxId(1);

function post(app: ReturnType<typeof httpApp>, url: string, payload: unknown, secret?: string) {
  const headers = { "content-type": "application/json", ...(secret ? { authorization: `Bearer ${secret}` } : {}) };
  return app.inject({ method: "POST", url, headers, payload: JSON.stringify(payload) });
}

describe("operator actions over HTTP", () => {
  it.each(["resubmit", "reprice", "cancel", "replace", "resolve", "suspend", "resume"] as const)(
    "forward body and caller to %s, and answer 202 with the transaction",
    async (action) => {
      const actionRequests: TransactionActionRequest[] = [];
      const act = async (actionRequest: TransactionActionRequest) => {
        actionRequests.push(actionRequest);
        return sampleTransaction();
      };
      const app = httpApp({ act }, { apiKeys: KEYS });
      const body = { reason: "because", anything: [1, { deep: true }] };
      const response = await post(app, `/api/v1/tx/${txId.toUpperCase()}/${action}`, body, "s3cret-of-on-call");
      expect(response.statusCode).toBe(202);
      expect(response.headers.location).toBe(`/api/v1/tx/${sampleTransaction().txId}`);
      expect(response.json()).toMatchObject({ txId: sampleTransaction().txId, signer: SIGNER_EIP55 });
      expect(actionRequests).toEqual([{ action, txId, request: body, actor: "operator:on-call" }]);
    },
  );

  it.each(["suspend", "resume", "realign"] as const)("%s a signer's lane", async (action) => {
    const actionRequests: LaneActionRequest[] = [];
    const actOnLane = async (actionRequest: LaneActionRequest) => {
      actionRequests.push(actionRequest);
      return [sampleSigner({ suspendedBy: action === "suspend" ? "OPERATOR" : null })];
    };
    const app = httpApp({ actOnLane }, { apiKeys: "none" });
    const response = await post(app, `/api/v1/signers/${SIGNER_EIP55}/${action}`, { reason: "r" });
    expect(response.statusCode).toBe(200);
    expect(response.json().items).toMatchObject([{ signer: SIGNER_EIP55, suspended: action === "suspend" }]);
    expect(actionRequests).toEqual([
      { action, signer: SIGNER_EIP55, request: { reason: "r" }, actor: "operator:anonymous" },
    ]);
  });

  it("pass on the caller's idempotency key if one is given", async () => {
    const actionRequests: unknown[] = [];
    const app = httpApp({
      act: async ({ idempotencyKey }) => {
        actionRequests.push(idempotencyKey);
        return sampleTransaction();
      },
      actOnLane: async ({ idempotencyKey }) => {
        actionRequests.push(idempotencyKey);
        return [sampleSigner()];
      },
    });
    for (const url of [`/api/v1/tx/${txId}/cancel`, `/api/v1/signers/${SIGNER_EIP55}/suspend`]) {
      const headers = { "content-type": "application/json", "idempotency-key": "ticket-7" };
      await app.inject({ method: "POST", url, headers, payload: JSON.stringify({ reason: "r" }) });
    }
    expect(actionRequests).toEqual(["ticket-7", "ticket-7"]);
    const headers = { "content-type": "application/json", "idempotency-key": "gr\u00fc\u00dfe" };
    const url = `/api/v1/tx/${txId}/cancel`;
    const refused = await app.inject({ method: "POST", url, headers, payload: JSON.stringify({ reason: "r" }) });
    expect(refused.json()).toMatchObject({ code: "INVALID_REQUEST", path: "idempotency-key" });
    expect(actionRequests).toHaveLength(2);
  });

  it("answer 409 and name the mined transaction if they come too late", async () => {
    const mined = sampleHash(3);
    const act = () =>
      Promise.reject(new FencepostError("CONFLICT", "it was mined in block 12", { txId, txHash: mined }));
    const response = await post(httpApp({ act }), `/api/v1/tx/${txId}/cancel`, { reason: "r" });
    expect(response.statusCode).toBe(409);
    expect(response.json()).toMatchObject({
      code: "CONFLICT",
      txId,
      txHash: mined,
      detail: "it was mined in block 12",
    });
  });

  it("answer 409 if another node owns the lane, with the owner's URL in body and header", async () => {
    const ownerUrl = "http://10.0.0.8:3000";
    const act = () => Promise.reject(new FencepostError("NOT_LEADER", "elsewhere", { ownerUrl }));
    const response = await post(httpApp({ act }), `/api/v1/tx/${txId}/cancel`, { reason: "r" });
    expect(response.statusCode).toBe(409);
    expect(response.headers["fencepost-owner"]).toBe(ownerUrl);
  });

  it("require a valid API key", async () => {
    const app = httpApp({}, { apiKeys: KEYS });
    expect((await post(app, `/api/v1/tx/${txId}/cancel`, { reason: "r" })).statusCode).toBe(401);
    expect((await post(app, `/api/v1/signers/${SIGNER_EIP55}/suspend`, { reason: "r" })).statusCode).toBe(401);
    const open = httpApp({});
    expect((await post(open, "/api/v1/tx/nonsense/cancel", { reason: "r" })).statusCode).toBe(404);
    expect((await open.inject({ method: "GET", url: `/api/v1/tx/${txId}/cancel` })).statusCode).toBe(405);
    expect((await post(open, `/api/v1/tx/${txId}/explode`, { reason: "r" })).statusCode).toBe(404);
    const large = { reason: "r", payload: "x".repeat(300 * 1024) };
    expect((await post(open, `/api/v1/tx/${txId}/replace`, large)).statusCode).toBe(413);
    expect((await post(open, `/api/v1/tx/${txId}/cancel?now=1`, { reason: "r" })).statusCode).toBe(400);
  });
});

it("the history of a transaction shows which API key caused a state change", async () => {
  const at = new Date("2026-01-01T00:00:00.000Z");
  const step = { ordinal: 2, fromState: "TRACKING", state: "TRACKING", subState: "PENDING", count: 1 } as const;
  const times = { firstAt: at, lastAt: at };
  const by = { nodeId: "node-a", token: 3, reason: "typo" };
  const decision = { actor: "operator:on-call", audit: { action: "cancel", ticket: { id: 7 } } };
  const transaction = async () =>
    sampleTransaction({
      history: [
        { ...step, ...by, ...times, event: "cancel", decision },
        { ...step, ...by, ...times, event: "resubmit" },
      ],
    });
  const response = await httpApp({ transaction }).inject(`/api/v1/tx/${txId}?include=history`);
  expect(response.json().history).toMatchObject([
    { event: "cancel", actor: "operator:on-call", audit: decision.audit, fencingToken: 3, reason: "typo" },
    { event: "resubmit", actor: null, audit: null },
  ]);
});
