import { afterEach, describe, expect, it } from "vitest";
import type { CreateRequest } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { type EmbeddedPair, startPair } from "../../support/embedded-pair.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNERS, TO, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

/** Sends that name their nonce or a pool, at a replica that does not own the lane and cannot reach its owner. */

let world: World;
afterEach(() => world.close());

const POOLS = new Map([["payouts", SIGNERS]]);

function pair(options: WorldOptions = {}): Promise<EmbeddedPair> {
  world = new World({ ...options, node: { pools: POOLS, ...options.node } });
  return startPair(world);
}

const send = ({ node }: WorldNode, request: CreateRequest) => node.api.create(request);
const named = (signer: Address, nonce: number, more: object = {}): CreateRequest =>
  transfer({ signer, nonce, ...more } as Parameters<typeof transfer>[0]);
const toPool = (more: object = {}, asked: object = {}): CreateRequest =>
  transfer({ signer: { pool: "payouts", ...asked }, ...more } as Parameters<typeof transfer>[0]);
const noncesOf = (signer: Address) =>
  world
    .rows()
    .filter(({ lane }) => lane.signer === signer)
    .map(({ nonce }) => nonce);

describe("a create with a named nonce, sent to a replica,", () => {
  // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/stages/1-create/asked-create.ts
  it("gets that nonce", async () => {
    const { other, signer } = await pair({ hints: true });
    const startedMs = world.clock.monotonicMs();
    const created = await world.settle(send(other, named(signer, 0, { requestId: "one" })));
    expect(created).toMatchObject({ outcome: "created", nonce: 0, requestId: "one", lane: { signer } });
    expect(world.clock.monotonicMs() - startedMs, "hints are followed at once").toBeLessThan(200);
    expect(await world.settle(send(other, named(signer, 1)))).toMatchObject({ nonce: 1 });
    await world.allSettled(2);
    expect(noncesOf(signer)).toEqual([0, 1]);
    checkInvariants(world);
  });

  it.each([
    ["low", 0],
    ["high", 7],
    // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/stages/1-create/asked-create.ts
  ])("is refused with the owner's error if the nonce is too %s", async (_, nonce) => {
    const { other, owner, signer } = await pair();
    await world.settle(send(owner, transfer({ signer })));
    const request = named(signer, nonce, { payload: { to: TO, value: "9", gas: 21_000, gasPrice: "2000000000" } });
    const direct = await world.refusal(send(owner, request));
    const through = await world.refusal(send(other, request));
    expect(through).toBeInstanceOf(FencepostError);
    expect([through.code, through.message, through.extras]).toEqual([direct.code, direct.message, direct.extras]);
    expect(through).toMatchObject({ code: "CONFLICT", extras: { nextNonce: 1 } });
    expect(noncesOf(signer)).toEqual([0]);
  });

  it("succeeds only once if several creates name the same nonce", async () => {
    const { other, owner, signer } = await pair();
    const asked = Array.from({ length: 12 }, (_, index) => {
      const payload = { to: TO, value: String(index), gas: 21_000, gasPrice: "2000000000" };
      return send(index % 2 === 0 ? other : owner, named(signer, 0, { payload }));
    });
    const results = await world.settle(Promise.allSettled(asked));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const each of results) {
      if (each.status === "rejected") expect(each.reason).toMatchObject({ code: "CONFLICT", extras: { nextNonce: 1 } });
    }
    expect(noncesOf(signer)).toEqual([0]);
  });

  it("is recognised as a repeat by its nonce and payload", async () => {
    const { other, owner, signer } = await pair();
    const first = await world.settle(send(other, named(signer, 0)));
    for (const at of [other, owner]) {
      expect(await world.settle(send(at, named(signer, 0)))).toMatchObject({ outcome: "existing", txId: first.txId });
    }
    expect(noncesOf(signer)).toEqual([0]);
  });

  // protects [Replicas that embed the library] src/application/cluster/route.ts, src/application/cluster/pending-creates.ts
  it("is processed in the order of the calls", async () => {
    const { other, signer } = await pair();
    const sent: Promise<{ nonce: number | null }>[] = [];
    for (let nonce = 0; nonce < 30; nonce++) {
      sent.push(send(other, named(signer, nonce)));
      if (nonce % 7 === 0) await Promise.resolve();
    }
    expect((await world.settle(Promise.all(sent))).map(({ nonce }) => nonce)).toEqual(sent.map((_, index) => index));
    await world.allSettled(30);
    checkInvariants(world);
  });

  // protects [Replicas that embed the library] src/application/cluster/route.ts, src/application/cluster/pending-creates.ts
  it("keeps its position in a batch", async () => {
    const { other, signer } = await pair();
    const [elsewhere] = SIGNERS.filter((each) => each !== signer) as [Address];
    const batch = [
      transfer({ signer, requestId: "first" }),
      named(signer, 1),
      transfer({ signer: elsewhere }),
      named(signer, 9),
      transfer({ signer }),
      named(signer, 3),
    ];
    const results = await world.settle(other.node.api.createBatch(batch));
    const codes = results.map((result) => (result instanceof FencepostError ? result.code : result.nonce));
    expect(codes).toEqual([0, 1, 0, "CONFLICT", 2, 3]);
    await world.allSettled(5);
    checkInvariants(world);
  });
});

describe("a create for a pool whose lanes several replicas own", () => {
  // protects [Replicas that embed the library] src/application/cluster/cluster.ts
  it("is spread over all lanes, whichever replica receives it", async () => {
    const { other, owner } = await pair();
    for (const at of [other, owner]) {
      const created = await world.settle(Promise.all(Array.from({ length: 15 }, () => send(at, toPool()))));
      for (const signer of SIGNERS) expect(created.filter(({ lane }) => lane.signer === signer)).toHaveLength(5);
      expect(created.every(({ nonce }) => nonce !== null)).toBe(true);
    }
    await world.allSettled(30);
    for (const signer of SIGNERS) expect(noncesOf(signer)).toHaveLength(10);
    checkInvariants(world);
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/stages/1-create/asked-create.ts
  it("makes one transaction per request id", async () => {
    const { other, owner } = await pair();
    const ask = (index: number) =>
      Promise.all([other, owner, other].map((at) => send(at, toPool({ requestId: `p-${index}` }))));
    const answers = await world.settle(Promise.all(Array.from({ length: 12 }, (_, index) => ask(index))));
    for (const each of answers) {
      expect(new Set(each.map(({ txId, nonce, lane }) => `${txId} ${nonce} ${lane.signer}`)).size).toBe(1);
    }
    const again = await world.settle(ask(3));
    expect(again.map(({ txId, outcome }) => [txId, outcome])).toEqual(
      again.map(() => [answers[3]?.[0]?.txId, "existing"]),
    );
    await world.allSettled(12);
    expect(world.rows()).toHaveLength(12);
    checkInvariants(world);
  });

  it("stays with the signer of its sticky key", async () => {
    const { other, owner } = await pair();
    const keys = Array.from({ length: 6 }, (_, index) => `customer-${index}`);
    for (const stickyKey of keys) {
      const [first, second] = await world.settle(
        Promise.all([send(other, toPool({}, { stickyKey })), send(owner, toPool({}, { stickyKey }))]),
      );
      expect(second?.lane.signer).toBe(first?.lane.signer);
    }
    expect(new Set(world.rows().map(({ lane }) => lane.signer)).size).toBeGreaterThan(1);
  });

  it("is refused with REQUEST_ID_REUSED if another payload used the request id", async () => {
    const { other, owner } = await pair();
    const { txId } = await world.settle(send(other, toPool({ requestId: "taken" })));
    const payload = { to: TO, value: "5", gas: 21_000, gasPrice: "2000000000" };
    for (const at of [other, owner]) {
      const refused = await world.refusal(send(at, toPool({ requestId: "taken", payload })));
      expect(refused).toMatchObject({ code: "REQUEST_ID_REUSED", extras: { txId } });
    }
  });
});

// protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/stages/1-create/asked-create.ts
it("a create with a named nonce or for a pool, sent to a node with a URL, reaches an embedded owner", async () => {
  world = new World({ hints: true, node: { pools: POOLS } });
  const embedded = await world.startNode({ embedded: true, signers: SIGNERS.slice(0, 1) });
  const reachable = await world.startNode({ signers: SIGNERS.slice(1) });
  await world.until(() => embedded.node.gauges().lanesHeld === 1, 30_000);
  await world.clock.advance(1_000);
  const [own] = SIGNERS as [Address];
  expect(await world.settle(send(reachable, named(own, 0)))).toMatchObject({ nonce: 0, lane: { signer: own } });
  const created = await world.settle(Promise.all(Array.from({ length: 9 }, () => send(reachable, toPool()))));
  expect(new Set(created.map(({ lane }) => lane.signer)).size).toBe(3);
  await world.allSettled(10);
  checkInvariants(world);
});
