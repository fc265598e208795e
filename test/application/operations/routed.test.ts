import { afterEach, describe, expect, it } from "vitest";
import type { Reserved } from "../../../src/application/api.ts";
import type { FencepostError } from "../../../src/domain/errors.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { type OperatedWorld, startTwo } from "../../support/operations.ts";
import { CHAIN_ID, SIGNER, SIGNERS, type World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function two(options: WorldOptions = {}): Promise<{ readonly owner: WorldNode; readonly other: WorldNode }> {
  const started = await startTwo(options);
  ({ world, ops } = started);
  return started;
}

function reserve({ node }: WorldNode): Promise<Reserved> {
  return world.settle(node.api.reserveNonce({ signer: SIGNER }));
}

describe("an action sent to a node that does not own the lane", () => {
  it("is performed by the owner", async () => {
    const { owner, other } = await two();
    world.holdBlocks();
    const txId = await ops.sent(owner);
    const view = await ops.act(other, "cancel", { txId, request: { reason: "typo" } });
    expect(view.attempts.map(({ kind }) => kind)).toEqual(["initial", "cancel"]);
    const [step] = ops.row(txId).history.filter(({ decision }) => decision !== undefined);
    const lane = [...world.database.state.lanes.values()].find((row) => row.lane.signer === SIGNER);
    expect(step).toMatchObject({ nodeId: owner.url.replace("http://", ""), token: lane?.token });
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/CANCELLED");
    checkInvariants(world);
  });

  it("is refused with the owner's error", async () => {
    const { owner, other } = await two();
    const txId = await ops.sent(owner);
    await ops.settled(txId);
    await expect(ops.act(other, "cancel", { txId })).rejects.toMatchObject({ code: "CONFLICT" });
    await expect(ops.act(other, "reprice", { txId, request: { reason: "" } })).rejects.toMatchObject({
      code: expect.stringMatching(/CONFLICT|INVALID_REQUEST/),
    });
  });

  it("can suspend and resume a lane", async () => {
    const { owner, other } = await two();
    const [suspended] = await ops.lane(other, "suspend");
    expect(suspended).toMatchObject({ suspendedBy: "OPERATOR" });
    const txId = await ops.create(owner);
    await world.clock.advance(5_000);
    expect(ops.row(txId).state).toBe("ALLOCATED");
    const [resumed] = await ops.lane(other, "resume");
    expect(resumed).toMatchObject({ suspendedBy: null });
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });

  it("can reserve and release a nonce", async () => {
    const { owner, other } = await two();
    const { outcome, reservation } = await reserve(other);
    expect({ outcome, ...reservation }).toMatchObject({ outcome: "created", nonce: 0, state: "RESERVED" });
    expect(reservation.expiresAt).toBeInstanceOf(Date);
    const released = await world.settle(other.node.api.releaseNonce(reservation.reservationId));
    expect(released).toMatchObject({ state: "RELEASED" });
    const txId = await ops.create(owner);
    expect(ops.row(txId).nonce).toBe(0);
  });

  it("is refused with the owner's URL in basic mode", async () => {
    const { owner, other } = await two({ node: { mode: "basic" } });
    const txId = await ops.create(owner);
    await expect(ops.act(other, "cancel", { txId })).rejects.toMatchObject({
      code: "NOT_LEADER",
      extras: { ownerUrl: owner.url },
    });
  });

  it("is not sent twice if the owner does not respond", async () => {
    const { owner, other } = await two();
    world.holdBlocks();
    const txId = await ops.sent(owner);
    world.network.hangUp(owner.url);
    const failure = await ops.act(other, "cancel", { txId }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "UNAVAILABLE" });
  });

  // protects [Operators] src/application/operations/operations.ts
  it("is refused if it names another lane's reservation", async () => {
    const { owner, other } = await two();
    const { reservation } = await reserve(other);
    const { reservationId } = reservation;
    const lane = { ...reservation.lane, signer: SIGNERS.at(-1) as typeof SIGNER };
    const release = { action: "releaseNonce", body: { reservationId }, owner: null };
    const results = await world.settle(
      Promise.all([owner, other].map(({ node }) => node.actions.receive(lane, release))),
    );
    expect(results.map((result) => (result as FencepostError).code).sort()).toEqual(["INVALID_REQUEST", "NOT_LEADER"]);
    expect(await owner.node.api.reservation(reservationId)).toMatchObject({ state: "RESERVED" });
  });
});

describe("an action from a newer node", () => {
  it.each([
    ["actOnLane", "drain", { signer: SIGNER, request: { reason: "because", chainId: CHAIN_ID, until: "noon" } }],
    ["act", "hasten", { request: { reason: "because", until: "noon" } }],
  ] as const)(
    // protects [Operators] src/application/operations/lane-actions.ts, src/application/operations/transaction-actions.ts
    "is refused as unsupported if the owner's version does not support it yet (%s: %s)",
    async (name, action, fields) => {
      const { owner } = await two();
      world.holdBlocks();
      const txId = await ops.sent(owner);
      const lane = { chainId: CHAIN_ID, signer: SIGNER };
      const body = { txId, actor: "operator:ops", ...fields, action };
      const result = await world.settle(owner.node.actions.receive(lane, { action: name, body, owner: null }));
      expect(result).toMatchObject({
        code: "UNAVAILABLE",
        message: `the node that acts for this signer does not know "${action}" yet: upgrade it; nothing was done`,
      });
    },
  );
});

describe("an action sent to the owner itself", () => {
  it("is parsed once", async () => {
    const { owner } = await two();
    world.holdBlocks();
    const txId = await ops.sent(owner);
    let parsed = 0;
    // The property is not enumerable: a parser can read it, but a copy of the object does not have it.
    const request = Object.defineProperty({}, "reason", {
      get: () => {
        parsed++;
        return "because";
      },
    });
    await world.settle(owner.node.api.act({ action: "cancel", txId, request, actor: "operator:ops" }));
    await world.settle(owner.node.api.actOnLane({ action: "suspend", signer: SIGNER, request, actor: "operator:ops" }));
    expect(parsed).toBe(2);
  });
});
