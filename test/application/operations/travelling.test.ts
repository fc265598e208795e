import { describe, expect, it } from "vitest";
import type { OwnerAction } from "../../../src/application/cluster/owner-actions.ts";
import type { OwnedLane } from "../../../src/application/lane/owned-lane.ts";
import { createOperations, type OperationPorts } from "../../../src/application/operations/operations.ts";
import { type Lane, laneKey } from "../../../src/domain/lane.ts";
import type { LaneRequest } from "../../../src/ports/peers.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { createFakeCodec } from "../../support/fake-codec.ts";
import { CHAIN_ID, SIGNER, TO } from "../../support/world.ts";

const LANE = { chainId: CHAIN_ID, signer: SIGNER };

/** A node that serves one chain and owns no lane, so every operation is forwarded. */
function asked() {
  const codec = createFakeCodec();
  const forwarded: LaneRequest[] = [];
  const offered = new Map<string, OwnerAction>();
  const ports = {
    codec,
    chains: new Map([[CHAIN_ID, {}]]),
    intents: { codec, chainIds: [CHAIN_ID] },
    store: {
      reservation: async () => ({ lane: LANE, nonce: 0, state: "RESERVED" }),
      lanes: async () => [],
      laneDecisions: async () => [],
    },
    signer: { addresses: () => [SIGNER] },
    actions: {
      register: (name: string, action: OwnerAction) => offered.set(name, action),
      forwardToOwner: async (_: Lane, request: LaneRequest) => {
        forwarded.push(request);
        return { outcome: "created", reservationId: "r" };
      },
    },
  } as unknown as OperationPorts;
  const operations = createOperations(ports);
  return { operations, forwarded, offered };
}

describe("an action forwarded to the lane's owner", () => {
  // protects [Operators] src/application/operations/reservations.ts, src/application/operations/lane-actions.ts
  it("always names the chain", async () => {
    const { operations, forwarded } = asked();
    await operations.reserveNonce({ signer: SIGNER }, "wallet");
    const actionRequest = {
      action: "suspend",
      signer: SIGNER,
      request: { reason: "because" },
      actor: "operator:ops",
    } as const;
    await operations.actOnLane(actionRequest).catch(() => undefined);
    expect(forwarded).toEqual([
      { action: "reserveNonce", body: { signer: SIGNER, chainId: CHAIN_ID }, owner: "wallet" },
      {
        action: "actOnLane",
        body: { ...actionRequest, request: { reason: "because", chainId: CHAIN_ID } },
        owner: null,
      },
    ]);
  });
});

describe("an action received from another node", () => {
  // protects [Operators] src/application/operations/operations.ts
  it("returns UNAVAILABLE if an unexpected error occurs", async () => {
    const { offered } = asked();
    const fees = { type: "legacy", gasPrice: 1n } as const;
    const unsigned = { ...LANE, nonce: 0, to: TO, data: "0x", value: 0n, gas: 21_000n, accessList: [], fees } as const;
    const [signed] = await new FakeSigner([SIGNER]).sign(SIGNER, [unsigned]);
    const body = { reservationId: "r", request: { rawTransaction: signed?.rawTransaction } };
    const request = { action: "submitReserved", body, owner: null };
    // In this test the chain's context is an empty object, so the first access to one of its fields throws.
    const done = offered.get("submitReserved")?.({ key: laneKey(LANE), lane: LANE } as OwnedLane, request);
    await expect(done).rejects.toMatchObject({ code: "UNAVAILABLE", message: expect.stringContaining("look at") });
  });
});
