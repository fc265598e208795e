import { describe, expect, it } from "vitest";
import { createOperations, type OperationPorts } from "../../../src/application/operations/operations.ts";
import type { LaneRequest } from "../../../src/ports/peers.ts";
import { createFakeCodec } from "../../support/fake-codec.ts";
import { CHAIN_ID, SIGNER } from "../../support/world.ts";

/** A node that serves one chain and owns no lane: what it is asked for travels. */
function asked() {
  const codec = createFakeCodec();
  const told: LaneRequest[] = [];
  const ports = {
    codec,
    chains: new Map([[CHAIN_ID, {}]]),
    intents: { codec, chainIds: [CHAIN_ID] },
    store: { reservation: async () => ({}), lanes: async () => [], laneDecisions: async () => [] },
    signer: { addresses: () => [SIGNER] },
  } as unknown as OperationPorts;
  const operations = createOperations(ports, {
    register: () => undefined,
    forwardToOwner: async (_, request) => {
      told.push(request);
      return { outcome: "created", reservationId: "r" };
    },
  });
  return { operations, told };
}

describe("an operation that travels to the owner", () => {
  it("names the chain that is the only one where it was asked: the owner may serve several", async () => {
    const { operations, told } = asked();
    await operations.reserveNonce({ signer: SIGNER });
    const order = { action: "suspend", signer: SIGNER, request: { reason: "because" }, actor: "operator:ops" } as const;
    await operations.actOnLane(order).catch(() => undefined);
    expect(told).toEqual([
      { action: "reserveNonce", body: { signer: SIGNER, chainId: CHAIN_ID } },
      { action: "actOnLane", body: { ...order, request: { reason: "because", chainId: CHAIN_ID } } },
    ]);
  });
});
