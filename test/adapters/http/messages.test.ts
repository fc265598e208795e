import { Compile } from "typebox/compile";
import { describe, expect, it, vi } from "vitest";
import type { SignedMessage as Answer } from "../../../src/application/operations/messages.ts";
import { RequestedSignature, SignaturesPage, SignedMessage } from "../../../src/contract/schemas/message-signing.ts";
import { forbiddenBy } from "../../../src/domain/errors.ts";
import { httpApp } from "../../support/http-app.ts";
import { aPermit } from "../../support/message-samples.ts";
import { CHAIN_ID, SIGNER, SIGNER_EIP55, sampleHash, sampleSignature, sampleTxId } from "../../support/scripted-api.ts";

const ID = sampleTxId(77);
const AT = "2026-11-18T12:00:00.000Z";

const answer = (overrides: Partial<Answer> = {}): Answer => ({
  ...{ signatureId: ID, lane: { chainId: CHAIN_ID, signer: SIGNER }, requestId: "permit-1", kind: "typedData" },
  ...{ digest: sampleHash(1), signature: `0x${"1".repeat(130)}`, rule: "usdc", state: "SIGNED", at: AT },
  ...{ expiresAt: null, ...overrides },
});

const view = sampleSignature();

describe("POST /api/v1/sign", () => {
  const payload = { signer: SIGNER, requestId: "permit-1", typedData: aPermit(SIGNER) };
  const ask = (requestSignature: () => Promise<Answer>) =>
    httpApp({ requestSignature }).inject({ method: "POST", url: "/api/v1/sign", payload });

  it("answers 200 with the signature, which no cache keeps", async () => {
    const requestSignature = vi.fn(async () => answer());
    const response = await ask(requestSignature);
    expect(response.statusCode).toBe(200);
    expect(response.headers["cache-control"]).toBe("no-store");
    expect(response.json()).toMatchObject({ signer: SIGNER_EIP55, chainId: CHAIN_ID, signature: answer().signature });
    expect(Compile(SignedMessage).Check(response.json())).toBe(true);
    expect(requestSignature).toHaveBeenCalledWith(payload);
  });

  it("answers 202 without a signature while it waits for approval", async () => {
    const response = await ask(async () => answer({ state: "AWAITING_APPROVAL", signature: null, expiresAt: AT }));
    expect(response.statusCode).toBe(202);
    expect(response.json()).toMatchObject({ state: "AWAITING_APPROVAL", signature: null, expiresAt: AT });
    expect(Compile(SignedMessage).Check(response.json())).toBe(true);
  });

  it("names the rule that refuses", async () => {
    const response = await ask(() => Promise.reject(forbiddenBy({ rule: "signer.messages", detail: "no rule" })));
    expect(response.statusCode).toBe(403);
    expect(response.json()).toMatchObject({ code: "FORBIDDEN", rule: "signer.messages" });
  });
});

describe("requested signatures over HTTP", () => {
  it("are read and listed without the signature", async () => {
    const signatures = vi.fn(async () => ({ items: [view], next: "more" }));
    const app = httpApp({ signature: async () => view, signatures });
    const one = (await app.inject(`/api/v1/signatures/${ID}`)).json();
    expect(one).toMatchObject({ signer: SIGNER_EIP55, amount: "100", decision: { actor: "operator:boss", at: AT } });
    expect(one.typedData.message).toEqual(aPermit(SIGNER).message);
    expect(Compile(RequestedSignature).Check(one)).toBe(true);
    const page = (await app.inject(`/api/v1/signatures?signer=${SIGNER}&key=checkout&state=SIGNED&limit=5`)).json();
    expect(Compile(SignaturesPage).Check(page)).toBe(true);
    expect(page).toEqual({ items: [one], next: "more" });
    expect(signatures).toHaveBeenCalledWith({ signer: SIGNER, key: "checkout", state: "SIGNED", limit: 5 });
  });

  it.each(["approve", "reject"] as const)("are decided about with a reason: %s", async (action) => {
    const decideSignature = vi.fn(async () => view);
    const url = `/api/v1/signatures/${ID}/${action}`;
    const app = httpApp({ decideSignature });
    const response = await app.inject({ method: "POST", url, payload: { reason: "checked" } });
    expect(response.statusCode).toBe(200);
    expect(decideSignature).toHaveBeenCalledWith({
      ...{ action, signatureId: ID, request: { reason: "checked" }, actor: "operator:anonymous" },
    });
  });
});
