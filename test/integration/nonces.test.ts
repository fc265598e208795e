/** Nonce reservations for callers that sign themselves, over HTTP, on a real database and a real EVM. */
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect } from "vitest";
import { FencepostApiError, type FencepostClient, neverSent } from "../../src/client/index.ts";
import { createFencepost } from "../../src/index.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { it, KEYS, RECIPIENT, SHORT_LEASE, SIGNER } from "../support/integration.ts";
import { rpcCall } from "../support/rpc-call.ts";
import { transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const GWEI = 1_000_000_000n;

function sign(nonce: number, { key = KEYS[0] as `0x${string}`, value = 99n } = {}): Promise<`0x${string}`> {
  const fees = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI };
  return privateKeyToAccount(key).signTransaction({
    ...{ type: "eip1559", chainId: 31_337, nonce, to: RECIPIENT, value, gas: 21_000n, ...fees },
  });
}

async function codeOf(asking: Promise<unknown>): Promise<string> {
  const error = await asking.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FencepostApiError);
  return (error as FencepostApiError).code;
}

const holesOf = async (client: FencepostClient) => (await client.signer(SIGNER))[0]?.holes ?? [];

describe("a reserved nonce", () => {
  it("can be used by a raw transaction that viem signed, and is confirmed", async ({ edr, nodes, database }) => {
    const { url, client } = await nodes.start(edr.url);
    const answer = await fetch(`${url}/api/v1/nonces`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ signer: SIGNER, requestId: "payout" }),
    });
    const reserved = (await answer.json()) as { reservationId: string; nonce: number };
    expect(answer.status).toBe(201);
    expect(answer.headers.get("location")).toBe(`/api/v1/nonces/${reserved.reservationId}`);
    expect(reserved).toMatchObject({ signer: SIGNER, chainId: 31_337, nonce: 0, state: "RESERVED" });
    expect(await client.reserveNonce({ signer: SIGNER, requestId: "payout" })).toMatchObject(reserved);
    const behind = await client.send(transfer(1));
    expect(behind.nonce).toBe(1);
    const { reservationId } = reserved;
    expect(await codeOf(client.submitReserved(reservationId, await sign(1)))).toBe("SUBMISSION_REJECTED");
    expect(await codeOf(client.submitReserved(reservationId, await sign(0, { key: KEYS[1] })))).toBe(
      "SUBMISSION_REJECTED",
    );
    const made = await client.submitReserved(reservationId, await sign(0));
    expect(made).toMatchObject({ nonce: 0, state: "TRACKING", requestId: "payout" });
    expect(await client.waitFor(made.txId)).toMatchObject({ state: "CONFIRMED", receipt: { status: "success" } });
    expect(await client.waitFor(behind.txId)).toMatchObject({ state: "CONFIRMED" });
    expect(await client.reservation(reservationId)).toMatchObject({ state: "SUBMITTED", txId: made.txId });
    expect(await codeOf(client.submitReserved(reservationId, await sign(0)))).toBe("CONFLICT");
    expect(await codeOf(client.releaseNonce(reservationId))).toBe("CONFLICT");
    await audit({ database, rpcUrl: edr.url });
  });

  it("can be used or released with the SDK's withNonce", async ({ edr, nodes }) => {
    const { client } = await nodes.start(edr.url);
    const lane = { signer: SIGNER };
    const handedIn = await client.withNonce(lane, async ({ nonce }) => ({ rawTransaction: await sign(nonce) }));
    expect(await client.waitFor(handedIn?.txId ?? "")).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    const sent = await client.withNonce(lane, async ({ nonce }) => {
      const raw = await sign(nonce, { value: 7n });
      return { txHash: await rpcCall<`0x${string}`>(edr.url, "eth_sendRawTransaction", [raw]) };
    });
    const followed = await client.waitFor(sent?.txId ?? "");
    expect(followed).toMatchObject({
      state: "CONFIRMED",
      nonce: 1,
      submitAttempts: 0,
      attempts: [{ kind: "external" }],
    });
    expect(await client.withNonce(lane, async () => neverSent())).toBeNull();
    const next = await client.send(transfer(3));
    expect(next.nonce).toBe(2);
    let kept = "";
    const failing = client.withNonce({ ...lane, ttl: "10m" }, async ({ reservationId }) => {
      kept = reservationId;
      throw new Error("signed, perhaps");
    });
    await expect(failing).rejects.toThrow("signed, perhaps");
    expect(await client.reservation(kept)).toMatchObject({ state: "RESERVED", nonce: 3 });
  });

  it("can be used for an EIP-7702 delegation, which only its caller can sign", async ({ edr, nodes }) => {
    const { client } = await nodes.start(edr.url);
    const account = privateKeyToAccount(KEYS[0]);
    const made = await client.withNonce({ signer: SIGNER }, async ({ nonce }) => {
      const delegated = await account.signAuthorization({ address: RECIPIENT, chainId: 31_337, nonce: nonce + 1 });
      const fees = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI };
      const content = { chainId: 31_337, nonce, to: SIGNER, gas: 100_000n, ...fees };
      return {
        rawTransaction: await account.signTransaction({ ...content, type: "eip7702", authorizationList: [delegated] }),
      };
    });
    const found = await client.waitFor(made?.txId ?? "");
    expect(found).toMatchObject({ state: "CONFIRMED", attempts: [{ kind: "initial" }] });
  });

  // protects [Reservations] src/main/library/embedded-face.ts, src/client/with-nonce.ts
  it("used with the library's withNonce has the same results as with the SDK", async ({ edr, nodes, database }) => {
    const { client } = await nodes.start(edr.url);
    const theirs = await client.withNonce({ signer: SIGNER }, async ({ nonce }) => ({
      rawTransaction: await sign(nonce),
    }));
    expect(theirs).toEqual({
      ...{ txId: expect.any(String), chainId: 31_337, signer: SIGNER, requestId: expect.any(String) },
      ...{ nonce: 0, state: "TRACKING" },
    });
    const fencepost = await createFencepost({
      databaseUrl: database.url,
      chains: [{ rpc: edr.url, confirmations: 0, pollInterval: "50ms" }],
      signers: [KEYS[0]],
    });
    try {
      const made = await fencepost.withNonce({ signer: SIGNER }, async ({ nonce }) => ({
        rawTransaction: await sign(nonce),
      }));
      expect(made).toEqual({ ...theirs, txId: expect.any(String), requestId: expect.any(String), nonce: 1 });
      expect(await fencepost.waitFor(made?.txId ?? "")).toMatchObject({ state: "CONFIRMED", nonce: 1 });
      expect(await fencepost.withNonce({ signer: SIGNER }, async () => neverSent())).toBeNull();
    } finally {
      await fencepost.close();
    }
  });

  it("survives the death of the node that reserved it", async ({ edr, nodes, database }) => {
    const first = await nodes.start(edr.url, SHORT_LEASE);
    const { reservationId, nonce } = await first.client.reserveNonce({ signer: SIGNER, ttl: "10m" });
    first.signal("SIGKILL");
    await first.exited;
    const { client } = await nodes.start(edr.url, SHORT_LEASE);
    const behind = await waitUntil(() => client.send(transfer(5)).catch(() => null), "the lane is taken over");
    expect(behind.nonce).toBe(nonce + 1);
    const rawTransaction = await sign(nonce);
    // Retry as often as needed: the lease in this test is sometimes too short for a busy machine.
    const txId = await waitUntil(async () => {
      await client.submitReserved(reservationId, rawTransaction).catch(() => undefined);
      return (await client.reservation(reservationId)).txId;
    }, "it is handed in");
    expect(await client.waitFor(txId)).toMatchObject({ state: "CONFIRMED", nonce });
    await untilSettled(database, 2);
    await audit({ database, rpcUrl: edr.url });
  });
});

describe("a hole left by a reserved nonce", () => {
  it("is used by the next transaction if the reservation was released", async ({ edr, nodes, database }) => {
    const { client } = await nodes.start(edr.url);
    const { reservationId, nonce } = await client.reserveNonce({ signer: SIGNER });
    const above = await client.send(transfer(1));
    // Wait until the transaction at the higher nonce is signed: an unsigned one would itself move down to the released
    // nonce.
    await waitUntil(async () => (await client.get(above.txId)).attempts.length === 1, "the one above is signed");
    expect(await client.releaseNonce(reservationId)).toMatchObject({ state: "RELEASED" });
    expect(await holesOf(client)).toMatchObject([{ nonce, why: "released" }]);
    const next = await client.send(transfer(2));
    expect(next.nonce).toBe(nonce);
    await Promise.all([above, next].map(({ txId }) => client.waitFor(txId)));
    expect(await holesOf(client)).toEqual([]);
    await untilSettled(database, 2);
    await audit({ database, rpcUrl: edr.url });
  });

  it("is filled by a placeholder with the hole policy `heal`", async ({ edr, nodes, database }) => {
    const { client } = await nodes.start(edr.url, { FENCEPOST_HOLE_POLICY: "heal" });
    const { reservationId, nonce } = await client.reserveNonce({ signer: SIGNER, ttl: 1 });
    const behind = await client.send(transfer(1));
    expect(await client.waitFor(behind.txId)).toMatchObject({ state: "CONFIRMED", nonce: nonce + 1 });
    const { state, txId } = await client.reservation(reservationId);
    expect(state).toBe("EXPIRED");
    expect(await client.waitFor(txId ?? "")).toMatchObject({
      nonce,
      state: "FAILED_FINAL",
      subState: "CANCELLED",
      attempts: [{ kind: "placeholder" }],
    });
    await audit({ database, rpcUrl: edr.url });
  });

  // protects [Reservations] src/application/detours/holes.ts, src/application/detours/holes.ts
  it("blocks no other transaction by default", async ({ edr, nodes, database }) => {
    const { client } = await nodes.start(edr.url);
    const { reservationId, nonce } = await client.reserveNonce({ signer: SIGNER, ttl: 1 });
    const behind = await client.send(transfer(1));
    expect(await client.waitFor(behind.txId)).toMatchObject({ state: "CONFIRMED", nonce: nonce + 1 });
    const { state, txId } = await client.reservation(reservationId);
    expect(state).toBe("EXPIRED");
    expect(await client.waitFor(txId ?? "")).toMatchObject({ nonce, subState: "CANCELLED" });
    const late = await client.submitReserved(reservationId, await sign(nonce)).catch((error: unknown) => error);
    expect(late).toMatchObject({ status: 409, code: "CONFLICT", problem: { txId } });
    await audit({ database, rpcUrl: edr.url });
  });

  it("can still be filled by the caller that reserved the nonce", async ({ edr, nodes, database }) => {
    const { client } = await nodes.start(edr.url);
    const { reservationId, nonce } = await client.reserveNonce({ signer: SIGNER, ttl: 1 });
    await waitUntil(async () => (await holesOf(client)).length === 1, "the reservation is a hole");
    const made = await client.submitReserved(reservationId, await sign(nonce));
    expect(await client.waitFor(made.txId)).toMatchObject({ state: "CONFIRMED", nonce });
    expect(await client.reservation(reservationId)).toMatchObject({ state: "SUBMITTED", txId: made.txId });
    await audit({ database, rpcUrl: edr.url });
  });

  // protects [Reservations] src/application/detours/holes.ts
  it("is not filled while the caller's own transaction waits in the mempool", async ({ edr, nodes, database }) => {
    const { client } = await nodes.start(edr.url);
    const { nonce } = await client.reserveNonce({ signer: SIGNER, ttl: 1 });
    await rpcCall(edr.url, "evm_setAutomine", [false]);
    await rpcCall(edr.url, "evm_setIntervalMining", [0]);
    const txHash = await rpcCall<`0x${string}`>(edr.url, "eth_sendRawTransaction", [await sign(nonce)]);
    const behind = await client.send(transfer(1));
    await waitUntil(async () => (await holesOf(client)).length === 1, "the reservation is a hole");
    // Wait until the search for the caller's own transaction is over; it lasts as long as the reservation did. After
    // that, Fencepost may fill the nonce with a placeholder.
    const over = "SELECT 1 FROM fencepost.hole WHERE since < clock_timestamp() - interval '3 seconds'";
    await waitUntil(async () => (await database.query(over)).length === 1, "the search is over");
    await rpcCall(edr.url, "evm_setIntervalMining", [3_000]);
    expect(await client.waitFor(behind.txId)).toMatchObject({ state: "CONFIRMED" });
    expect(await rpcCall(edr.url, "eth_getTransactionReceipt", [txHash])).toMatchObject({ status: "0x1" });
    expect(await database.query("SELECT 1 FROM fencepost.transaction")).toHaveLength(1);
  });

  it("cannot be caused in large numbers, because a reservation over the limit gets 429", async ({ edr, nodes }) => {
    const { client } = await nodes.start(edr.url, { FENCEPOST_MAX_RESERVATIONS: "1" });
    await client.reserveNonce({ signer: SIGNER });
    const error = await client.reserveNonce({ signer: SIGNER }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 429, code: "QUOTA_EXCEEDED", problem: { rule: "maxReservations" } });
  });

  it("makes the lane's lowest open transaction STUCK if configured so", async ({ edr, nodes, database }) => {
    const { client } = await nodes.start(edr.url, { FENCEPOST_EXPIRED_RESERVATIONS: "hole" });
    const { reservationId, nonce } = await client.reserveNonce({ signer: SIGNER, ttl: 1 });
    const behind = await client.send(transfer(1));
    const { history = [] } = await waitUntil(async () => {
      const found = await client.get(behind.txId, { include: ["history"] });
      return found.state === "STUCK" ? found : null;
    }, "the head is STUCK");
    const { reason } = history.find(({ event }) => event === "stick") ?? {};
    expect(reason).toContain(`nonce ${nonce} below it is held by nothing`);
    expect(reason).toContain(reservationId);
    expect(await holesOf(client)).toMatchObject([{ nonce, why: "expired", since: expect.any(String) }]);
    const { items } = await client.completionsPage();
    expect(items).toMatchObject([{ txId: behind.txId, state: "STUCK", settled: false }]);
    expect(await database.query("SELECT 1 FROM fencepost.transaction")).toHaveLength(1);
  });
});
