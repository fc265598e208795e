import { describe, expect, it } from "vitest";
import type { OwnedLane } from "../../../../src/application/lane/owned-lane.ts";
import type { Result } from "../../../../src/application/stages/1-create/answer-existing.ts";
import {
  type AskedCreate,
  dequeuedCreates,
  type Inlet,
} from "../../../../src/application/stages/1-create/asked-create.ts";

import { type FencepostError, notLeader, otherNonce } from "../../../../src/domain/errors.ts";
import { aLane } from "../../../support/lane-samples.ts";

const LANE = aLane();
const [FIRST, SECOND] = ["0b0e7a2e-9c1d-4b7e-8d43-0a9f5a4f2a11", "0b0e7a2e-9c1d-4b7e-8d43-0a9f5a4f2a12"] as const;
const MADE: Result = { outcome: "created", txId: FIRST, lane: LANE, requestId: null, nonce: 4, state: "ALLOCATED" };
const request = { chainId: LANE.chainId, signer: LANE.signer, payload: {} };

async function take(results: readonly Result[], body: Readonly<Record<string, unknown>>, again = false) {
  const received: { readonly asked: readonly AskedCreate[]; readonly inlet: Inlet | undefined }[] = [];
  const create = async (asked: readonly AskedCreate[], inlet?: Inlet) => {
    received.push({ asked, inlet });
    return results;
  };
  const request_ = { action: "create", body, owner: null, again };
  const answer = dequeuedCreates({ create })({ lane: LANE } as OwnedLane, request_);
  return { received, answer: await answer.catch((error: FencepostError) => error) };
}

const two = {
  creates: [
    { txId: FIRST, owner: "shop", request },
    { txId: SECOND, request },
  ],
};

describe("creates that another node queued", () => {
  it("get the transaction ids that the other node stored", async () => {
    const { received, answer } = await take([MADE, otherNonce(3, 5)], two);
    const asked = [
      { txId: FIRST, owner: "shop", request },
      { txId: SECOND, owner: null, request },
    ];
    expect(received).toEqual([{ asked, inlet: { repeat: false } }]);
    expect(answer).toMatchObject({ results: [MADE, { code: "CONFLICT", nextNonce: 5 }] });
  });

  it("are looked up first if an earlier owner had begun them", async () => {
    const { received } = await take([MADE, MADE], two, true);
    expect(received).toMatchObject([{ inlet: { repeat: true } }]);
  });

  // protects [Replicas that embed the library] src/application/stages/1-create/asked-create.ts
  it("are put back in the queue if the lane was lost before the first create", async () => {
    const { answer } = await take([notLeader("lost"), notLeader("lost")], two);
    expect(answer).toMatchObject({ code: "NOT_LEADER" });
    expect((answer as FencepostError).extras.outcome).toBeUndefined();
  });

  // protects [Replicas that embed the library] src/application/stages/1-create/asked-create.ts
  it("have an unknown outcome if the lane was lost between two creates", async () => {
    for (const results of [
      [MADE, notLeader("lost")],
      [otherNonce(3, 5), notLeader("lost")],
    ]) {
      expect((await take(results, two)).answer).toMatchObject({ code: "NOT_LEADER", extras: { outcome: "unknown" } });
    }
  });

  it.each([
    ["no list", { creates: "all" }],
    ["no id", { creates: [{ txId: "x", request }] }],
    ["an id in capitals", { creates: [{ txId: FIRST.toUpperCase(), request }] }],
    ["another signer", { creates: [{ txId: FIRST, request: { ...request, signer: aLane().signer } }] }],
    [
      "another signer of its pool",
      { creates: [{ txId: FIRST, chosen: aLane().signer, request: { ...request, signer: { pool: "p" } } }] },
    ],
    ["another chain", { creates: [{ txId: FIRST, request: { ...request, chainId: LANE.chainId + 1 } }] }],
    ["a key without a name", { creates: [{ txId: FIRST, owner: "", request }] }],
    // protects [Replicas that embed the library] src/application/stages/1-create/asked-create.ts
  ])("are all refused if they have %s", async (_, body) => {
    const { received, answer } = await take([MADE], body);
    expect([received, answer]).toMatchObject([[], { code: "INVALID_REQUEST" }]);
  });
});
