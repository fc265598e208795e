import { afterEach, describe, expect, it } from "vitest";
import type { CreateRequest } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { type EmbeddedPair, startPair } from "../../support/embedded-pair.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { anIntent } from "../../support/lane-samples.ts";
import { CHAIN_ID, SIGNERS, TO, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

/** Several processes that embed a node: no node can receive requests from another, and each accepts every send. */

let world: World;
afterEach(() => world.close());

function pair(options: WorldOptions = {}): Promise<EmbeddedPair> {
  world = new World(options);
  return startPair(world);
}

const send = ({ node }: WorldNode, request: CreateRequest) => node.api.create(request);
const left = () => [...world.database.state.leftRequests.values()];
const asIntent = ({ gas: _, gasCost: __, ...intent }: ReturnType<typeof anIntent>) => intent;
const intakeRows = () => [...world.database.state.intake.values()].filter(({ aliasOf }) => aliasOf === null);

describe("a create at a replica that does not own the lane", () => {
  it("resolves with a nonce once the owner has processed the create", async () => {
    const { other, signer } = await pair({ hints: true });
    const startedMs = world.clock.monotonicMs();
    const created = await world.settle(send(other, transfer({ signer, requestId: "one" })));
    expect(created).toMatchObject({ outcome: "created", nonce: 0, requestId: "one", lane: { signer } });
    expect(world.clock.monotonicMs() - startedMs, "hints are followed at once").toBeLessThan(200);
    await world.allSettled(1);
    expect(world.rows()).toMatchObject([{ txId: created.txId, state: "CONFIRMED", nonce: 0 }]);
    expect(intakeRows()).toEqual([]);
    checkInvariants(world);
  });

  it("works without hints", async () => {
    const { other, signer } = await pair();
    const sent = Array.from({ length: 60 }, () => send(other, transfer({ signer })));
    const created = await world.settle(Promise.all(sent));
    expect(created.map(({ nonce }) => nonce)).toEqual(created.map((_, index) => index));
    await world.allSettled(60);
    checkInvariants(world);
  });

  it("makes one transaction if the owner gets the same request id", async () => {
    const { owner, other, signer } = await pair();
    const requests = Array.from({ length: 20 }, (_, index) => transfer({ signer, requestId: `both-${index}` }));
    const answers = await world.settle(
      Promise.all(
        requests.map((request) => Promise.all([send(owner, request), send(other, request), send(other, request)])),
      ),
    );
    for (const each of answers) expect(new Set(each.map(({ txId, nonce }) => `${txId} ${nonce}`)).size).toBe(1);
    await world.allSettled(20);
    expect(world.rows()).toHaveLength(20);
    expect(world.database.state.completions).toHaveLength(20);
    checkInvariants(world);
  });

  // protects [Times and holds] src/domain/ledger/settle-intake.ts
  it("is refused with the owner's error if its validUntil has passed", async () => {
    const { owner, other, signer } = await pair();
    const validUntil = new Date(world.clock.now().getTime() - 1).toISOString();
    const late = transfer({ signer, requestId: "late", validUntil });
    const refusals = [await world.refusal(send(other, late)), await world.refusal(send(owner, late))];
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({ code: "INVALID_REQUEST", extras: { path: "validUntil" } });
      expect(refusal.message).toMatch(/^validUntil: is not in the future/);
    }
    expect([world.rows(), intakeRows(), world.database.state.completions]).toEqual([[], [], []]);
    const { outcome } = await world.settle(send(other, transfer({ signer, requestId: "late" })));
    expect(outcome, "its request id is free").toBe("created");
    await world.allSettled(1);
    checkInvariants(world);
  });

  // protects [Times and holds] src/domain/ledger/settle-intake.ts
  it("returns the existing transaction if repeated after validUntil", async () => {
    const { owner, other, signer } = await pair();
    const validUntil = new Date(world.clock.now().getTime() + 60_000).toISOString();
    const request = transfer({ signer, requestId: "once", validUntil });
    const { txId } = await world.settle(send(owner, request));
    await world.allSettled(1);
    await world.clock.advance(61_000);
    expect(await world.settle(send(other, request))).toMatchObject({ outcome: "existing", txId });
  });

  it("is refused with REQUEST_ID_REUSED if another payload used the request id", async () => {
    const { owner, other, signer } = await pair();
    const first = await world.settle(send(owner, transfer({ signer, requestId: "taken" })));
    const payload = { to: TO, value: "5", gas: 21_000, gasPrice: "2000000000" };
    const reused = { code: "REQUEST_ID_REUSED", extras: { txId: first.txId } };
    const known = world.refusal(send(other, transfer({ signer, requestId: "taken", payload })));
    expect(await known).toMatchObject(reused);
    const [direct, left] = await world.settle(
      Promise.allSettled([
        send(owner, transfer({ signer, requestId: "raced" })),
        send(other, transfer({ signer, requestId: "raced", payload })),
      ]),
    );
    expect([direct?.status, left?.status].sort()).toEqual(["fulfilled", "rejected"]);
    await world.allSettled(2);
    expect(world.rows(), "what was refused left nothing").toHaveLength(2);
    expect(world.database.state.completions).toHaveLength(2);
  });
});

describe("a replica that does not own a lane", () => {
  // protects [Replicas that embed the library] src/application/cluster/route.ts
  it("does not try to acquire the lane at each create", async () => {
    const { other, signer } = await pair({ hints: true });
    const { acquireLane } = other.store;
    let tries = 0;
    other.store.acquireLane = function (...asked) {
      tries += 1;
      return acquireLane.apply(this, asked);
    };
    const startedMs = world.clock.monotonicMs();
    for (let sent = 0; sent < 40; sent++) await world.settle(send(other, transfer({ signer })));
    expect(tries).toBeLessThanOrEqual(1 + (world.clock.monotonicMs() - startedMs) / 1_000);
  });
});

describe("a create that must be refused, sent to a replica,", () => {
  // protects [Replicas that embed the library] src/domain/ledger/settle-intake.ts, src/adapters/postgres/statements/left-intent.ts
  it("is refused with the owner's error", async () => {
    const { owner, other, signer } = await pair();
    const doomed = `0x${"dd".repeat(20)}` as const;
    world.chain.revertCallsTo(doomed, "0x");
    const request = transfer({ signer, requestId: "again", payload: { to: doomed, value: 0 } });
    const direct = await world.refusal(send(owner, request));
    const left = await world.refusal(send(other, request));
    expect(left).toBeInstanceOf(FencepostError);
    expect([left.code, left.message, left.extras]).toEqual([direct.code, direct.message, direct.extras]);
    expect(left).toMatchObject({ code: "SUBMISSION_REJECTED", extras: { reason: "REVERT" } });
    expect(world.rows()).toEqual([]);
    expect(world.database.state.completions).toEqual([]);
    world.chain.revertCallsTo(doomed, null);
    expect(await world.settle(send(other, request))).toMatchObject({ outcome: "created", nonce: 0 });
    await world.allSettled(1);
    checkInvariants(world);
  });

  it("is refused at once if it depends on pending transactions", async () => {
    const { other, signer } = await pair();
    world.holdBlocks();
    await world.settle(send(other, transfer({ signer })));
    const doomed = `0x${"dd".repeat(20)}` as const;
    world.chain.revertCallsTo(doomed, "0x");
    const refused = world.refusal(send(other, transfer({ signer, payload: { to: doomed, value: 0 } })));
    const behind = world.settle(send(other, transfer({ signer })));
    expect(await refused).toMatchObject({ code: "SUBMISSION_REJECTED", extras: { dependsOnPending: true } });
    expect(await behind).toMatchObject({ nonce: 1 });
    world.releaseBlocks();
    await world.allSettled(2);
  });

  it.each([
    ["a field that is not there", { payload: { to: TO, vlaue: 1 } }, "INVALID_REQUEST"],
    ["a signer that no node has", { signer: `0x${"c".repeat(40)}` }, "UNKNOWN_SIGNER"],
  ])("is refused by the replica itself if it has %s", async (_, wrong, code) => {
    const { other, signer } = await pair();
    expect(await world.refusal(send(other, transfer({ signer, ...wrong })))).toMatchObject({ code });
    expect(world.database.state.lastIntakeId).toBe(0);
  });
});

describe("a create whose owner does not process it in time", () => {
  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/adapters/postgres/statements/left-request.ts
  it("is accepted as CREATED without a nonce", async () => {
    const { owner, other, signer } = await pair();
    owner.store.pause();
    const startedMs = world.clock.monotonicMs();
    const created = await world.settle(send(other, transfer({ signer, requestId: "patient" })));
    expect(created).toMatchObject({ outcome: "created", state: "CREATED", nonce: null });
    expect(world.clock.monotonicMs() - startedMs).toBeLessThanOrEqual(4_500);
    const repeated = await world.settle(send(other, transfer({ signer, requestId: "patient" })));
    expect(repeated).toMatchObject({ outcome: "existing", txId: created.txId });
    await world.allSettled(1);
    expect(world.rows()).toMatchObject([{ txId: created.txId, state: "CONFIRMED" }]);
    owner.store.resume();
    checkInvariants(world);
  });

  // protects [Replicas that embed the library] src/domain/ledger/settle-intake.ts
  it("is FAILED_FINAL in the feed if the transaction would revert", async () => {
    const { owner, other, signer } = await pair();
    const doomed = `0x${"dd".repeat(20)}` as const;
    world.chain.revertCallsTo(doomed, "0x");
    owner.store.pause();
    const created = await world.settle(send(other, transfer({ signer, payload: { to: doomed, value: 0 } })));
    expect(created).toMatchObject({ state: "CREATED", nonce: null });
    owner.store.resume();
    await world.allSettled(1);
    expect(world.rows()).toMatchObject([{ txId: created.txId, state: "FAILED_FINAL", subState: "REJECTED" }]);
    expect(world.database.state.completions).toMatchObject([{ txId: created.txId, state: "FAILED_FINAL" }]);
  });

  it("is processed by the receiving replica if the owner crashed", async () => {
    const { owner, other, signer } = await pair({ sessionLocks: true });
    world.crash(owner);
    expect(await world.settle(send(other, transfer({ signer })))).toMatchObject({ nonce: 0 });
    await world.allSettled(1);
    checkInvariants(world);
  });

  it("is never both accepted and refused", async () => {
    const { owner, other, signer } = await pair();
    const doomed = `0x${"dd".repeat(20)}` as const;
    world.chain.revertCallsTo(doomed, "0x");
    for (let late = 3_900; late <= 4_100; late += 10) {
      owner.store.pause();
      const settled = world.settle(
        send(other, transfer({ signer, payload: { to: doomed, value: 0 } })).catch((error: FencepostError) => error),
      );
      world.clock.after(late, () => owner.store.resume());
      const result = await settled;
      await world.clock.advance(2_000);
      const failed = world.rows().length;
      if (result instanceof FencepostError) expect(failed, `${late} ms: nothing of what was refused`).toBe(0);
      else expect(world.rows(), `${late} ms: what was accepted is final`).toMatchObject([{ txId: result.txId }]);
      world.database.state.transactions.clear();
    }
  });
});

describe("two replicas that accept the same request id", () => {
  async function bothAccepted() {
    const { owner, other, signer } = await pair();
    const third = await world.startNode({ embedded: true });
    await world.until(() => [owner, other, third].every(({ node }) => node.gauges().lanesHeld > 0), 30_000);
    const own = SIGNERS.find((each) => world.ownerOf(each) === "node-1") ?? signer;
    owner.store.pause();
    const request = transfer({ signer: own, requestId: "both" });
    const answers = await world.settle(Promise.all([send(other, request), send(third, request)]));
    expect(answers).toMatchObject([
      { state: "CREATED", nonce: null },
      { state: "CREATED", nonce: null },
    ]);
    expect(new Set(answers.map(({ txId }) => txId)).size, "each was answered by itself").toBe(2);
    return { owner, other, third, request, ids: answers.map(({ txId }) => txId) };
  }

  // protects [Replicas that embed the library] src/adapters/postgres/stores/queries.ts
  it("return two transaction ids for the same transaction", async () => {
    const { owner, other, third, ids } = await bothAccepted();
    world.holdBlocks();
    owner.store.resume();
    await world.until(() => world.rows()[0]?.state === "TRACKING", 30_000);
    const [row] = world.rows();
    const actionRequest = { action: "suspend", request: { reason: "by either name" }, actor: "operator:me" } as const;
    for (const { node } of [owner, other, third]) {
      for (const txId of ids) {
        expect(await world.settle(node.api.transaction(txId))).toMatchObject({ txId: row?.txId, nonce: 0 });
        expect(await world.settle(node.api.explain(txId))).toMatchObject({
          summary: expect.stringContaining("Nonce 0"),
        });
        const within = { withinMs: 1_000, signal: new AbortController().signal };
        expect(await world.settle(node.api.firstHash(txId, within))).toBe(row?.attempts[0]?.txHash);
      }
    }
    for (const txId of ids) {
      expect(await world.settle(other.node.api.act({ ...actionRequest, txId }))).toMatchObject({ txId: row?.txId });
      await world.settle(third.node.api.act({ ...actionRequest, action: "resume", txId }));
    }
    world.releaseBlocks();
    await world.allSettled(1);
    expect(world.rows()).toHaveLength(1);
    expect(world.database.state.completions).toMatchObject([{ txId: row?.txId, requestId: "both" }]);
    expect(ids).toContain(row?.txId);
    checkInvariants(world);
  });
});

describe("intake rows left by a node of the previous release", () => {
  const intentOf = (signer: Address, overrides = {}) =>
    asIntent(anIntent({ chainId: CHAIN_ID, signer }, { payload: { to: TO, gasPrice: 2_000_000_000n }, ...overrides }));

  // protects [Replicas that embed the library] src/application/detours/intake.ts
  it("are processed, or refused with only the reason stored", async () => {
    const { signer } = await pair();
    const doomed = `0x${"dd".repeat(20)}` as const;
    world.chain.revertCallsTo(doomed, "0x");
    const taken = intentOf(signer);
    const refused = intentOf(signer, { requestId: "free", payload: { to: doomed, gasPrice: 2_000_000_000n } });
    for (const intent of [refused, taken]) world.database.insertIntake(intent, true);
    await world.allSettled(1);
    expect(world.rows()).toMatchObject([{ txId: taken.txId, nonce: 0, state: "CONFIRMED" }]);
    expect(world.database.state.declined.get(refused.txId)).toMatchObject({
      code: "SUBMISSION_REJECTED",
      reason: "REVERT",
    });
    expect(intakeRows()).toEqual([]);
    checkInvariants(world);
  });

  // protects [Replicas that embed the library] src/application/detours/intake.ts
  it("become one transaction if they share a request id", async () => {
    const { owner, signer } = await pair();
    owner.store.pause();
    const unnotified = intentOf(signer, { requestId: "told" });
    const stored = { ...unnotified, txId: "00000000-0000-4000-8000-00000000000a" };
    world.database.insertIntake(unnotified, true);
    world.database.insertIntake(stored);
    owner.store.resume();
    await world.allSettled(1);
    expect(world.rows()).toMatchObject([{ txId: stored.txId }]);
    expect(await owner.node.api.transaction(unnotified.txId)).toMatchObject({ txId: stored.txId });
  });
});

describe("a write to the table of pending requests", () => {
  // protects [Replicas that embed the library] src/application/stages/1-create/answer-existing.ts
  it("has an unknown outcome if the write gets no response", async () => {
    const { other, signer } = await pair();
    other.store.failNextLeave("unknown-committed");
    const request = transfer({ signer, requestId: "unheard" });
    const unknown = await world.refusal(send(other, request));
    expect(unknown).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown", txId: expect.any(String) } });
    await world.allSettled(1);
    const repeated = await world.settle(send(other, request));
    expect(repeated).toMatchObject({ outcome: "existing", txId: unknown.extras.txId });
    expect(world.rows()).toHaveLength(1);
  });

  it("is reported as not accepted if the database refused the write", async () => {
    const { other, signer } = await pair();
    other.store.failNextLeave("unavailable");
    const refused = await world.refusal(send(other, transfer({ signer })));
    expect(refused.code).toBe("UNAVAILABLE");
    expect(refused.extras.outcome).toBeUndefined();
    expect(world.database.state.lastIntakeId).toBe(0);
  });
});

describe("a replica that closes while creates wait for their owner", () => {
  // protects [Replicas that embed the library] src/application/cluster/cluster.ts
  it("returns these creates as accepted", async () => {
    const { owner, other, signer } = await pair();
    owner.store.pause();
    const sent = Array.from({ length: 3 }, () => send(other, transfer({ signer })));
    await world.until(() => left().length > 0);
    const closing = other.node.close();
    const answers = await world.settle(Promise.all(sent), 1_000);
    expect(answers.map(({ state }) => state)).toEqual(["CREATED", "CREATED", "CREATED"]);
    owner.store.resume();
    await world.settle(closing);
    await world.allSettled(3);
    checkInvariants(world);
  });
});

// protects [Replicas that embed the library] src/application/cluster/pending-requests.ts
it("a replica accepts no more creates for an unresponsive owner than its queue limit", async () => {
  const { owner, other, signer } = await pair({ node: { queueLimit: 5 } });
  owner.store.pause();
  const sent = Array.from({ length: 8 }, () => send(other, transfer({ signer })));
  const settled = await world.settle(Promise.allSettled(sent));
  const codes = settled.flatMap((each) => (each.status === "rejected" ? (each.reason as FencepostError).code : []));
  expect(codes).toEqual(["QUEUE_FULL", "QUEUE_FULL", "QUEUE_FULL"]);
  owner.store.resume();
  await world.allSettled(5);
});
