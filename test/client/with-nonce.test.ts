import { describe, expect, expectTypeOf, it } from "vitest";
import { createClient, type FencepostClient, neverSent } from "../../src/client/index.ts";
import type { CreatedTransaction } from "../../src/contract/schemas/create.ts";
import type { Fencepost } from "../../src/index.ts";

interface Asked {
  readonly path: string;
  readonly body: unknown;
}

/** A fake server that reserves nonce 7 and accepts every later request. */
function served(): { client: ReturnType<typeof createClient>; asked: Asked[] } {
  const asked: Asked[] = [];
  const fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const path = new URL(String(url)).pathname;
    asked.push({ path, body: init?.body === undefined ? null : JSON.parse(String(init.body)) });
    const reserved = { reservationId: "r-1", nonce: 7, state: "RESERVED" };
    return Response.json(path === "/api/v1/nonces" ? reserved : { txId: "tx-1", nonce: 7 });
  };
  return { client: createClient({ url: "http://node", fetch }), asked };
}

const lane = { signer: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", ttl: "30s" } as const;

describe("withNonce", () => {
  // protects [Reservations] src/main/library/embedded-face.ts, src/client/with-nonce.ts
  it("is the same method in the SDK and in the library", () => {
    expectTypeOf<Fencepost["withNonce"]>().toEqualTypeOf<FencepostClient["withNonce"]>();
    expectTypeOf<Awaited<ReturnType<Fencepost["withNonce"]>>>().toEqualTypeOf<CreatedTransaction | null>();
  });

  it.each([
    ["submit", { rawTransaction: "0x02" }],
    ["used", { txHash: `0x${"a".repeat(64)}` }],
  ] as const)("reports the use of the nonce: %s", async (path, use) => {
    const { client, asked } = served();
    const made = await client.withNonce(lane, async ({ nonce }) => {
      expect(nonce).toBe(7);
      return use;
    });
    expect(made).toMatchObject({ txId: "tx-1" });
    expect(asked).toEqual([
      { path: "/api/v1/nonces", body: { ...lane, requestId: expect.any(String) } },
      { path: `/api/v1/nonces/r-1/${path}`, body: use },
    ]);
  });

  it("releases the nonce if nothing was sent", async () => {
    const { client, asked } = served();
    expect(await client.withNonce(lane, async () => neverSent())).toBeNull();
    expect(asked.at(-1)).toEqual({ path: "/api/v1/nonces/r-1/release", body: {} });
  });

  // protects [Reservations] src/client/with-nonce.ts
  it("keeps the nonce reserved if the callback throws, because it may have signed", async () => {
    const { client, asked } = served();
    const failing = client.withNonce(lane, () => Promise.reject(new Error("half-way")));
    await expect(failing).rejects.toThrow("half-way");
    expect(asked).toHaveLength(1);
  });

  it.each([undefined, null, {}, "0x02"])("does not release the nonce if the callback returns %j", async (use) => {
    const { client, asked } = served();
    await expect(client.withNonce(lane, async () => use as never)).rejects.toThrow();
    expect(asked).toHaveLength(1);
  });
});
