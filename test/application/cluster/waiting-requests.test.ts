import { afterEach, describe, expect, it } from "vitest";
import type { TransactionAction } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { type EmbeddedPair, startPair } from "../../support/embedded-pair.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNERS, transfer, World, type WorldOptions } from "../../support/world.ts";

/**
 * Work of a lane's owner, requested from a node that cannot reach the owner: it waits in the database and is answered
 * there.
 */

let world: World;
afterEach(() => world.close());

function pair(options: WorldOptions = {}): Promise<EmbeddedPair> {
  world = new World(options);
  return startPair(world);
}

const actor = "operator:me";
const left = () => [...world.database.state.leftRequests.values()];
const order = (action: TransactionAction, txId: string, request: object = {}) =>
  ({ action, txId, request: { reason: "asked elsewhere", ...request }, actor }) as const;
const laneOrder = (action: "suspend" | "resume", signer: string, idempotencyKey?: string) => ({
  ...{ action, signer, request: { reason: "asked elsewhere" }, actor },
  ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
});
const decisionsOf = (txId: string) =>
  (world.rows().find((row) => row.txId === txId)?.history ?? []).filter(({ decision }) => decision !== undefined);

describe("an order at a replica that does not own the lane", () => {
  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/application/cluster/owner-actions.ts
  it("is carried out by the owner, and answered as if that had been asked", async () => {
    const { other, owner, signer } = await pair({ hints: true });
    world.holdBlocks();
    const { txId } = await world.settle(other.node.api.create(transfer({ signer })));
    await world.until(() => world.rows()[0]?.state === "TRACKING");
    const startedMs = world.clock.monotonicMs();
    const cancelled = await world.settle(other.node.api.act(order("cancel", txId)));
    expect(world.clock.monotonicMs() - startedMs, "hints are followed at once").toBeLessThan(500);
    expect(cancelled).toEqual(await owner.node.api.transaction(txId));
    expect(decisionsOf(txId)).toHaveLength(1);
    world.releaseBlocks();
    await world.allSettled(1);
    expect(world.rows()).toMatchObject([{ txId, subState: "CANCELLED" }]);
    checkInvariants(world);
  });

  it("holds, lets go, suspends and resumes; without hints, too", async () => {
    const { other, signer } = await pair();
    const { api } = other.node;
    const [suspended] = await world.settle(api.actOnLane(laneOrder("suspend", signer)));
    expect(suspended).toMatchObject({ suspendedBy: "OPERATOR" });
    const { txId } = await world.settle(api.create(transfer({ signer })));
    await world.settle(api.act(order("suspend", txId)));
    const [resumed] = await world.settle(api.actOnLane(laneOrder("resume", signer)));
    expect(resumed).toMatchObject({ suspendedBy: null });
    expect(world.rows()[0]?.heldSince).toBeInstanceOf(Date);
    await world.settle(api.act(order("resume", txId)));
    await world.allSettled(1);
    checkInvariants(world);
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/application/cluster/owner-actions.ts
  it("that the owner refuses is refused in its words", async () => {
    const { other, owner, signer } = await pair();
    const { txId } = await world.settle(owner.node.api.create(transfer({ signer })));
    await world.allSettled(1);
    const direct = await world.refusal(owner.node.api.act(order("cancel", txId)));
    const through = await world.refusal(other.node.api.act(order("cancel", txId)));
    expect(through).toBeInstanceOf(FencepostError);
    expect([through.code, through.message, through.extras]).toEqual([direct.code, direct.message, direct.extras]);
  });

  it("under one key, at both at once, is carried out once", async () => {
    const { other, owner, signer } = await pair();
    world.holdBlocks();
    const { txId } = await world.settle(owner.node.api.create(transfer({ signer })));
    await world.until(() => world.rows()[0]?.state === "TRACKING");
    const keyed = { ...order("reprice", txId), idempotencyKey: "once" };
    await world.settle(Promise.all([other, owner, other].map(({ node }) => node.api.act(keyed))));
    expect(decisionsOf(txId)).toHaveLength(1);
    world.releaseBlocks();
    await world.allSettled(1);
    checkInvariants(world);
  });
});

describe("a nonce for a caller's own signature, at a replica that does not own the lane", () => {
  it("is reserved, given back and reserved again", async () => {
    const { other, signer } = await pair();
    const { api } = other.node;
    const first = await world.settle(api.reserveNonce({ signer, requestId: "mine" }));
    expect(first).toMatchObject({ outcome: "created", reservation: { nonce: 0, state: "RESERVED" } });
    const again = await world.settle(api.reserveNonce({ signer, requestId: "mine" }));
    expect(again).toMatchObject({ outcome: "existing", reservation: first.reservation });
    const { reservationId } = first.reservation;
    expect(await world.settle(api.releaseNonce(reservationId))).toMatchObject({ state: "RELEASED" });
    expect(await world.settle(api.reserveNonce({ signer }))).toMatchObject({ reservation: { nonce: 0 } });
    checkInvariants(world);
  });
});

describe("an owner that does not take it up", () => {
  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/adapters/postgres/statements/left-request.ts
  it("in time finds it withdrawn: the caller was told that nothing was done, and nothing is", async () => {
    const { other, owner, signer } = await pair();
    owner.store.pause();
    const startedMs = world.clock.monotonicMs();
    const refused = await world.refusal(other.node.api.actOnLane(laneOrder("suspend", signer)));
    expect(refused).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 } });
    expect(refused.message).toMatch(/nothing was done, repeat it$/);
    expect(refused.extras.outcome).toBeUndefined();
    expect(world.clock.monotonicMs() - startedMs).toBeLessThanOrEqual(4_500);
    owner.store.resume();
    await world.clock.advance(5_000);
    expect(left()).toEqual([]);
    expect([...world.database.state.lanes.values()].find(({ lane }) => lane.signer === signer)?.suspendedBy).toBeNull();
  });

  // protects [Replicas that embed the library] src/adapters/postgres/statements/left-request.ts
  it("because its sender died before it could withdraw it, leaves it: its time is over", async () => {
    const { other, owner, signer } = await pair();
    owner.store.pause();
    void other.node.api.actOnLane(laneOrder("suspend", signer)).catch(() => undefined);
    await world.until(() => left().length === 1);
    world.crash(other);
    await world.clock.advance(4_100);
    owner.store.resume();
    await world.clock.advance(2_000);
    expect(left()).toMatchObject([{ begunBy: null, answer: null }]);
  });
});

describe("an owner that ends after it began", () => {
  async function begunAndCrashed(options: { readonly key?: string; readonly action: "suspend" | "reserve" }) {
    const nodes = await pair({ sessionLocks: true });
    const { other, owner, signer } = nodes;
    owner.store.answerRequest = () => new Promise(() => undefined);
    const { api } = other.node;
    const asked =
      options.action === "suspend"
        ? api.actOnLane(laneOrder("suspend", signer, options.key))
        : api.reserveNonce({ signer, ...(options.key === undefined ? {} : { requestId: options.key }) });
    const answer = asked.then(
      (done) => done,
      (error: FencepostError) => error,
    );
    const isDone = () =>
      world.database.state.reservations().length > 0 ||
      [...world.database.state.lanes.values()].some(({ suspendedBy }) => suspendedBy !== null);
    await world.until(isDone);
    world.crash(owner);
    return { ...nodes, answer };
  }

  // protects [Replicas that embed the library] src/application/cluster/owner-actions.ts
  it("has it finished by the next, where a repeat is recognised: once, and the caller hears it", async () => {
    const { answer } = await begunAndCrashed({ action: "reserve", key: "mine" });
    expect(await world.settle(answer)).toMatchObject({ reservation: { nonce: 0, requestId: "mine" } });
    expect(world.database.state.reservations()).toHaveLength(1);
    checkInvariants(world);
  });

  it("has an order with a key finished, too", async () => {
    const { answer } = await begunAndCrashed({ action: "suspend", key: "once" });
    expect(await world.settle(answer)).toMatchObject([{ suspendedBy: "OPERATOR" }]);
    expect(left()).toMatchObject([{ begunBy: expect.any(String), answer: expect.any(String) }]);
  });

  it("has an order about a transaction finished without a key: the order has an id of its own", async () => {
    const { other, owner, signer } = await pair({ sessionLocks: true });
    world.holdBlocks();
    const { txId } = await world.settle(other.node.api.create(transfer({ signer })));
    await world.until(() => world.rows()[0]?.state === "TRACKING");
    owner.store.answerRequest = () => new Promise(() => undefined);
    const repriced = other.node.api.act(order("reprice", txId));
    await world.until(() => decisionsOf(txId).length === 1);
    world.crash(owner);
    expect(await world.settle(repriced)).toMatchObject({ txId });
    expect(decisionsOf(txId)).toHaveLength(1);
    expect(world.rows()[0]?.attempts).toHaveLength(2);
    world.releaseBlocks();
    await world.allSettled(1);
    checkInvariants(world);
  });

  // protects [Replicas that embed the library] src/application/cluster/owner-actions.ts
  it("leaves the rest unknown, and it is not done twice", async () => {
    const { answer } = await begunAndCrashed({ action: "reserve" });
    const unknown = await world.settle(answer);
    expect(unknown).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown" } });
    expect((unknown as FencepostError).message).toMatch(/look whether it was/);
    await world.clock.advance(10_000);
    expect(world.database.state.reservations()).toHaveLength(1);
  });
});

describe("a database that does not answer", () => {
  it("at once has left nothing", async () => {
    const { other, signer } = await pair();
    other.store.failNextLeave("unavailable");
    const refused = await world.refusal(other.node.api.reserveNonce({ signer }));
    expect(refused).toMatchObject({ code: "UNAVAILABLE" });
    expect(refused.extras.outcome).toBeUndefined();
    expect(left()).toEqual([]);
  });

  it("whether it has it is told as unknown", async () => {
    const { other, signer } = await pair();
    other.store.failNextLeave("unknown-committed");
    const unknown = await world.refusal(other.node.api.reserveNonce({ signer }));
    expect(unknown).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown" } });
  });
});

it("withdraws what waits when its process ends", async () => {
  const { other, owner, signer } = await pair();
  owner.store.pause();
  const startedMs = world.clock.monotonicMs();
  const asked = other.node.api.reserveNonce({ signer }).catch((error: FencepostError) => error);
  await world.until(() => left().length === 1);
  const closing = other.node.close();
  expect(await world.settle(asked)).toMatchObject({ code: "UNAVAILABLE" });
  expect(world.clock.monotonicMs() - startedMs, "nobody is kept waiting for it").toBeLessThan(1_000);
  expect(left()).toEqual([]);
  owner.store.resume();
  await world.settle(closing);
});

// protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/application/cluster/owner-actions.ts
it("reaches an embedded owner from a node with a URL as well", async () => {
  world = new World({ hints: true });
  const embedded = await world.startNode({ embedded: true, signers: SIGNERS.slice(0, 1) });
  const reachable = await world.startNode({ signers: SIGNERS.slice(1) });
  await world.until(() => embedded.node.gauges().lanesHeld === 1, 30_000);
  await world.clock.advance(1_000);
  const { txId } = await world.settle(reachable.node.api.create(transfer()));
  await world.settle(reachable.node.api.act(order("suspend", txId)));
  await world.settle(reachable.node.api.act(order("resume", txId)));
  await world.allSettled(1);
  expect(world.network.forwards).toEqual([]);
  checkInvariants(world);
});
