import { Compile } from "typebox/compile";
import { describe, expect, it, vi } from "vitest";
import type { SignersQuery } from "../../../src/application/api.ts";
import type { SignerView, signers } from "../../../src/application/queries/signers.ts";
import { SignerLanes, SignersPage } from "../../../src/contract/schemas/signers.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Hole } from "../../../src/domain/nonces/holes.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { httpApp } from "../../support/http-app.ts";
import { CHAIN_ID, SIGNER_EIP55, sampleSigner, sampleTxId } from "../../support/scripted-api.ts";

const unused = sampleSigner({
  cursor: null,
  owner: null,
  token: 0,
  acquiredAt: null,
  oldestPendingAt: null,
  headOfLine: null,
  chainCounts: null,
  balance: null,
  balanceAsOf: null,
  pending: 0,
  confirmed: 0,
});

const LONG_AGO = new Date("2026-01-01T00:00:00.000Z");

function aHole(nonce: number): Hole {
  return { nonce, why: "released", detail: "given back", since: LONG_AGO, reservationId: null };
}

function page(...items: readonly SignerView[]): ReturnType<typeof signers> {
  return Promise.resolve({ items, next: "more" });
}

describe("GET /api/v1/signers", () => {
  it("returns a lane in the form of the contract's schema", async () => {
    const clock = createManualClock();
    await clock.advance(90_000);
    const app = httpApp({ signers: () => page(sampleSigner({ holes: [aHole(3), aHole(5)] })) }, { clock });
    const response = await app.inject("/api/v1/signers");
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({
      items: [
        {
          chainId: CHAIN_ID,
          signer: SIGNER_EIP55,
          name: null,
          cursor: 8,
          chainCounts: { latest: 7, pending: 8, asOf: "2026-01-01T00:00:00.000Z" },
          pending: 1,
          confirmed: 7,
          failed: 0,
          stuck: 0,
          reserved: 0,
          signerAway: null,
          unowned: null,
          window: { configured: 64, open: 64, inFlight: 1, limitedBy: null },
          holes: [3, 5].map((nonce) => ({
            nonce,
            why: "released",
            detail: "given back",
            since: LONG_AGO.toISOString(),
          })),
          oldestPendingAgeSeconds: 90,
          headOfLine: {
            txId: sampleTxId(1),
            nonce: 7,
            state: "TRACKING",
            createdAt: "2026-01-01T00:00:00.000Z",
            held: false,
          },
          balance: "9999000000000000000000",
          balanceAsOf: "2026-01-01T00:00:00.000Z",
          suspended: false,
          suspendedBy: null,
          owner: { nodeId: "node-a", instanceId: "instance-1", url: "http://127.0.0.1:3000" },
          lease: {
            fencingToken: 3,
            acquiredAt: "2026-01-01T00:00:00.000Z",
            expiresAt: "2026-01-01T00:00:10.000Z",
          },
        },
      ],
      next: "more",
    });
  });

  it("passes on cursor and limit, and returns the next cursor", async () => {
    const signers = vi.fn((_?: SignersQuery) => page());
    const response = await httpApp({ signers }).inject("/api/v1/signers?after=there&limit=500");
    expect(signers).toHaveBeenCalledExactlyOnceWith({ after: "there", limit: 500 });
    expect(response.json()).toEqual({ items: [], next: "more" });
  });

  it("matches the contract's schema, also for a lane that was never used", async () => {
    const app = httpApp({ signers: () => page(sampleSigner(), unused) });
    const body = (await app.inject("/api/v1/signers")).json();
    expect([...Compile(SignersPage).Errors(body)]).toEqual([]);
    expect(body.items[1]).toMatchObject({ cursor: null, owner: null, lease: null, balance: null, chainCounts: null });
  });

  it("returns no negative age if the clocks of node and database differ", async () => {
    const ahead = sampleSigner({ oldestPendingAt: new Date("2026-01-01T01:00:00.000Z") });
    const response = await httpApp({ signers: () => page(ahead) }).inject("/api/v1/signers");
    expect(response.json().items[0].oldestPendingAgeSeconds).toBe(0);
  });
});

describe("GET /api/v1/signers/{signer}", () => {
  it("returns the operators' decisions about the lane", async () => {
    const by = { action: "suspend", actor: "operator:on-call", reason: "key rotation", nodeId: "node-a" };
    const view = sampleSigner({ decisions: [{ ...by, token: 3, at: LONG_AGO }] });
    const response = await httpApp({ signer: async () => [view] }).inject(`/api/v1/signers/${SIGNER_EIP55}`);
    expect(response.json().items[0].decisions).toEqual([{ ...by, fencingToken: 3, at: LONG_AGO.toISOString() }]);
    expect([...Compile(SignerLanes).Errors(response.json())]).toEqual([]);
  });

  it("passes the address on unchanged", async () => {
    const signer = vi.fn((_: string, __?: { fresh?: boolean }) => Promise.resolve([sampleSigner()]));
    const response = await httpApp({ signer }).inject(`/api/v1/signers/${SIGNER_EIP55}`);
    expect(signer).toHaveBeenCalledExactlyOnceWith(SIGNER_EIP55, { fresh: false });
    await httpApp({ signer }).inject(`/api/v1/signers/${SIGNER_EIP55}?fresh=true`);
    expect(signer).toHaveBeenLastCalledWith(SIGNER_EIP55, { fresh: true });
    expect(response.json().items).toHaveLength(1);
  });

  it("answers 422 for a signer whose key no node holds", async () => {
    const signer = () => Promise.reject(new FencepostError("UNKNOWN_SIGNER", "no live node holds it"));
    const response = await httpApp({ signer }).inject(`/api/v1/signers/${SIGNER_EIP55}`);
    expect(response.statusCode).toBe(422);
    expect(response.json()).toMatchObject({ code: "UNKNOWN_SIGNER" });
  });
});
