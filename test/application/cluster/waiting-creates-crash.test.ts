import { afterEach, describe, expect, it } from "vitest";
import type { Created, CreateRequest } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { stickyMember } from "../../../src/domain/nonces/pool.ts";
import { type EmbeddedPair, startPair } from "../../support/embedded-pair.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { policiesOf } from "../../support/policies.ts";
import { SIGNERS, TO, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

/** Creates are enqueued for an owner. Then the owner is late, crashes, is stopped, or may not perform them. */

let world: World;
afterEach(() => world.close());

const POOLS = new Map([["payouts", SIGNERS]]);
const HELD_UP = () => new Promise<void>(() => undefined);

function pair(options: WorldOptions = {}): Promise<EmbeddedPair> {
  world = new World({ ...options, node: { pools: POOLS, ...options.node } });
  return startPair(world);
}

type Overrides = Parameters<typeof transfer>[0];
const send = ({ node }: WorldNode, request: CreateRequest, owner: string | null = null) =>
  node.api.create(request, owner);
const named = (signer: Address, nonce: number, more: object = {}) => transfer({ signer, nonce, ...more } as Overrides);
const toPool = (more: object = {}, asked: object = {}) =>
  transfer({ signer: { pool: "payouts", ...asked }, ...more } as Overrides);
/** A sticky key that selects this member of the pool. */
const keyOf = (signer: Address) =>
  Array.from({ length: 100 }, (_, index) => `key-${index}`).find((key) => stickyMember(SIGNERS, key) === signer);
const either = (asked: Promise<Created>) => asked.catch((error: FencepostError) => error);
const left = () => [...world.database.state.leftRequests.values()];
const made = (signer: Address) => world.rows().filter(({ lane }) => lane.signer === signer);

type Asking = (signer: Address, requestId?: string) => CreateRequest;

/** The two kinds of create: one that names nonce 0, and one to a pool. */
const KINDS: readonly (readonly [string, Asking])[] = [
  ["names its nonce", (signer, requestId = "mine") => named(signer, 0, { requestId })],
  ["is to a pool", (signer, requestId = "mine") => toPool({ requestId }, { stickyKey: keyOf(signer) })],
];

describe.each(KINDS)("a create that %s, enqueued by a replica,", (_, request) => {
  // protects [Replicas that embed the library] src/application/cluster/owner-actions.ts, src/application/stages/1-create/asked-create.ts
  it("gets a response from the next owner if the first owner dies after the commit", async () => {
    const { other, owner, signer } = await pair({ sessionLocks: true });
    owner.store.answerRequest = HELD_UP;
    const asked = either(send(other, request(signer)));
    await world.until(() => made(signer).length === 1);
    world.crash(owner);
    expect(await world.settle(asked)).toMatchObject({ outcome: "created", nonce: 0, txId: made(signer)[0]?.txId });
    await world.allSettled(1);
    expect(world.rows()).toHaveLength(1);
    checkInvariants(world);
  });

  // protects [Replicas that embed the library] src/application/cluster/owner-actions.ts, src/application/stages/1-create/asked-create.ts
  it("is found by its transaction id if the owner dies after the commit", async () => {
    const { other, owner, signer } = await pair({ sessionLocks: true });
    owner.store.answerRequest = HELD_UP;
    const { requestId: _, ...unnamed } = request(signer);
    const asked = either(send(other, unnamed));
    await world.until(() => made(signer).length === 1);
    world.crash(owner);
    expect(await world.settle(asked)).toMatchObject({ outcome: "created", nonce: 0, txId: made(signer)[0]?.txId });
    await world.allSettled(1);
    expect(world.rows()).toHaveLength(1);
  });

  it("is stored by the next owner if the first owner dies before the commit", async () => {
    const { other, owner, signer } = await pair({ sessionLocks: true });
    owner.store.commit = HELD_UP as never;
    const asked = either(send(other, request(signer)));
    await world.until(() => left().some(({ begunBy }) => begunBy !== null));
    await world.clock.advance(50);
    world.crash(owner);
    expect(await world.settle(asked)).toMatchObject({ outcome: "created", nonce: 0 });
    await world.allSettled(1);
    expect(world.rows()).toHaveLength(1);
    checkInvariants(world);
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/application/cluster/pending-creates.ts
  it("is never stored if the owner does not begin to process it in time", async () => {
    const { other, owner, signer } = await pair();
    owner.store.pause();
    const refused = await world.refusal(send(other, request(signer)));
    expect(refused).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 } });
    expect(refused.extras.outcome).toBeUndefined();
    owner.store.resume();
    await world.clock.advance(5_000);
    expect([left(), world.rows()]).toEqual([[], []]);
    expect(await world.settle(send(other, request(signer)))).toMatchObject({ outcome: "created", nonce: 0 });
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/application/cluster/pending-creates.ts
  it("has an unknown outcome if the owner does not respond in time", async () => {
    const { other, owner, signer } = await pair();
    owner.store.answerRequest = HELD_UP;
    const startedMs = world.clock.monotonicMs();
    const unknown = await world.refusal(send(other, request(signer)));
    expect(world.clock.monotonicMs() - startedMs).toBeLessThanOrEqual(8_500);
    expect(unknown).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown", txId: made(signer)[0]?.txId } });
    for (const at of [other, owner]) {
      expect(await world.settle(send(at, request(signer)))).toMatchObject({
        outcome: "existing",
        txId: unknown.extras.txId,
      });
    }
    expect(world.rows()).toHaveLength(1);
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/application/cluster/pending-creates.ts
  it("is never stored after a refusal", async () => {
    const { other, owner, signer } = await pair();
    for (let late = 3_900; late <= 4_100; late += 20) {
      owner.store.pause();
      const before = made(signer).length;
      const word = `late-${late}`;
      const asking = request === KINDS[0]?.[1] ? named(signer, before, { requestId: word }) : request(signer, word);
      world.clock.after(late, () => owner.store.resume());
      const result = await world.settle(either(send(other, asking)));
      await world.clock.advance(3_000);
      const grown = made(signer).length - before;
      if (!(result instanceof FencepostError)) expect(grown, `${late} ms: told of it`).toBe(1);
      else if (result.extras.outcome !== "unknown") expect(grown, `${late} ms: told that nothing was done`).toBe(0);
    }
    checkInvariants(world);
  });

  it("is stored once if the enqueue got no database response", async () => {
    const { other, signer } = await pair();
    other.store.failNextLeave("unknown-committed");
    const unknown = await world.refusal(send(other, request(signer)));
    expect(unknown).toMatchObject({ extras: { outcome: "unknown", txId: expect.any(String) } });
    await world.allSettled(1);
    expect(await world.settle(send(other, request(signer)))).toMatchObject({ txId: unknown.extras.txId });
    expect(world.rows()).toHaveLength(1);
  });

  it("is stored once if the owner's commit got no response", async () => {
    const { other, owner, signer } = await pair();
    owner.store.failNextCommit("unknown-committed");
    const result = await world.settle(either(send(other, request(signer))));
    expect(made(signer)).toHaveLength(1);
    if (result instanceof FencepostError)
      expect(result.extras).toMatchObject({ outcome: "unknown", txId: made(signer)[0]?.txId });
    else expect(result).toMatchObject({ txId: made(signer)[0]?.txId, nonce: 0 });
  });
});

describe("a pool create that got no result on one lane", () => {
  // protects [Replicas that embed the library] src/domain/ledger/allocate.ts
  it("is not stored on that lane if its repeat was stored on another lane", async () => {
    const { other, owner, signer } = await pair();
    const { commit } = owner.store;
    const late: (() => void)[] = [];
    owner.store.commit = function (...writes) {
      return new Promise((resolve, reject) => {
        late.push(() => void commit.apply(this, writes).then(resolve, reject));
      });
    };
    const stickyKey = keyOf(signer);
    const unknown = await world.refusal(send(other, toPool({ requestId: "twice" }, { stickyKey })));
    expect(unknown.extras.outcome).toBe("unknown");
    const elsewhere = SIGNERS.find((each) => world.ownerOf(each) === "node-2") as Address;
    const again = send(other, toPool({ requestId: "twice" }, { stickyKey: keyOf(elsewhere) }));
    const { txId, lane } = await world.settle(again);
    expect(lane.signer).toBe(elsewhere);
    owner.store.commit = commit;
    for (const begin of late) begin();
    await world.clock.advance(3_000);
    expect(world.rows()).toMatchObject([{ txId }]);
    checkInvariants(world);
  });
});

describe("a create enqueued for the lane's owner", () => {
  // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/stages/1-create/asked-create.ts
  it.each(KINDS)("is checked against the policy of the caller's API key (the create %s)", async (_, request) => {
    const policies = policiesOf({
      keys: { small: { maxValue: { perTransaction: "5" } }, large: { maxValue: { perDay: "50" } } },
    });
    const { other, owner, signer } = await pair({ policies });
    const payload = { to: TO, value: "50", gas: 21_000, gasPrice: "2000000000" };
    const dear = { ...request(signer), payload };
    const direct = await world.refusal(send(owner, dear, "small"));
    const through = await world.refusal(send(other, dear, "small"));
    expect([through.code, through.message, through.extras]).toEqual([direct.code, direct.message, direct.extras]);
    expect(through).toMatchObject({ code: "FORBIDDEN", extras: { rule: expect.any(String) } });
    expect(world.rows()).toEqual([]);
    await world.settle(send(other, dear, "large"));
    expect(world.rows()).toMatchObject([{ owner: "large", nonce: 0 }]);
    const anothers = await world.refusal(send(other, dear, "small"));
    expect(anothers).toMatchObject({ code: "REQUEST_ID_REUSED" });
    expect(anothers.extras.txId, "nothing is told of another key's").toBeUndefined();
  });

  it("awaits approval above the approval threshold", async () => {
    const policies = policiesOf({ keys: { shop: { requireApproval: { aboveValue: "5", expiresAfter: "1h" } } } });
    const { other, owner, signer } = await pair({ policies });
    const payload = { to: TO, value: "50", gas: 21_000, gasPrice: "2000000000" };
    const request = toPool({ requestId: "dear", payload }, { stickyKey: keyOf(signer) });
    const waiting = await world.settle(send(other, request, "shop"));
    expect(waiting).toMatchObject({ outcome: "created", nonce: null, state: "CREATED", lane: { signer } });
    for (const at of [other, owner]) {
      const again = await world.settle(send(at, request, "shop"));
      expect(again).toMatchObject({ outcome: "existing", txId: waiting.txId });
    }
    const refused = await world.refusal(send(other, named(signer, 0, { payload }), "shop"));
    expect(refused).toMatchObject({ code: "FORBIDDEN" });
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/stages/1-create/asked-create.ts
  it("is limited to the API key's share of the owner's queue", async () => {
    const { other, signer } = await pair({ node: { queueLimit: 10 } });
    world.holdBlocks();
    const limits = { signers: null, chains: null, queueShare: 0.3 };
    const asked = [0, 1, 2, 3, 4].map((nonce) => either(other.node.api.create(named(signer, nonce), "shop", limits)));
    const results = await world.settle(Promise.all(asked));
    expect(results.slice(0, 3)).toMatchObject([{ nonce: 0 }, { nonce: 1 }, { nonce: 2 }]);
    for (const each of results.slice(3))
      expect(each).toMatchObject({ code: "QUOTA_EXCEEDED", extras: { rule: "queueShare" } });
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/stages/1-create/asked-create.ts
  it("is refused if it is dequeued after its validUntil", async () => {
    const { other, owner, signer } = await pair();
    owner.store.pause();
    const validUntil = new Date(world.clock.now().getTime() + 2_000).toISOString();
    world.clock.after(3_000, () => owner.store.resume());
    const refused = await world.refusal(send(other, named(signer, 0, { validUntil })));
    expect(refused).toMatchObject({ code: "INVALID_REQUEST", extras: { path: "validUntil" } });
    expect(world.rows()).toEqual([]);
  });
});

describe("a lane's owner during a kill of its signers", () => {
  // protects [Replicas that embed the library] src/application/cluster/kill-switch.ts
  it("signs nothing until the kill ends", async () => {
    const { other, owner, signer } = await pair({ hints: true });
    await world.settle(owner.node.api.kill({ signer: null, request: { reason: "stolen" }, actor: "operator:me" }));
    await world.until(() => [other, owner].every(({ node }) => node.kills.inForce === 1), 5_000);
    const created = await world.settle(send(other, named(signer, 0)));
    await world.settle(send(other, toPool()));
    await world.clock.advance(5_000);
    expect(world.rows().map(({ state }) => state)).toEqual(["ALLOCATED", "ALLOCATED"]);
    expect(world.rows().flatMap(({ attempts }) => attempts)).toEqual([]);
    await world.settle(other.node.api.endKill({ signer: null, request: { reason: "found" }, actor: "operator:me" }));
    await world.allSettled(2);
    expect(world.rows().some(({ txId }) => txId === created.txId)).toBe(true);
    checkInvariants(world);
  });
});

describe("a transaction on hold, whose nonce its caller named,", () => {
  it("keeps that nonce", async () => {
    const { other, owner, signer } = await pair();
    world.holdBlocks();
    const suspend = { action: "suspend", request: { reason: "wait" }, actor: "operator:me" } as const;
    await world.settle(owner.node.api.actOnLane({ ...suspend, signer }));
    const first = await world.settle(send(other, named(signer, 0)));
    await world.settle(other.node.api.act({ ...suspend, txId: first.txId }));
    await world.settle(owner.node.api.actOnLane({ ...suspend, action: "resume", signer }));
    const payload = { to: TO, value: "50", gas: 21_000, gasPrice: "2000000000" };
    expect(await world.refusal(send(other, named(signer, 0, { payload })))).toMatchObject({ extras: { nextNonce: 1 } });
    expect(await world.settle(send(other, named(signer, 1)))).toMatchObject({ nonce: 1 });
    await world.settle(other.node.api.act({ ...suspend, action: "resume", txId: first.txId }));
    world.releaseBlocks();
    await world.allSettled(2);
    expect(made(signer).map(({ nonce }) => nonce)).toEqual([0, 1]);
    checkInvariants(world);
  });
});

describe("a repeated request id", () => {
  // protects [Replicas that embed the library] src/application/stages/1-create/answer-existing.ts
  it("returns the existing transaction at any node, even if the repeat names another nonce", async () => {
    const { other, owner, signer } = await pair();
    const { txId } = await world.settle(send(other, named(signer, 0, { requestId: "mine" })));
    for (const at of [other, owner]) {
      const again = await world.settle(send(at, named(signer, 1, { requestId: "mine" })));
      expect(again).toMatchObject({ outcome: "existing", txId, nonce: 0 });
    }
    expect(world.rows()).toHaveLength(1);
  });

  // protects [Replicas that embed the library] src/application/stages/1-create/answer-existing.ts
  it("returns a transaction that has no nonce yet", async () => {
    const { other, owner, signer } = await pair();
    owner.store.pause();
    const { txId } = await world.settle(send(other, transfer({ signer, requestId: "mine" })));
    const again = await world.settle(send(other, named(signer, 7, { requestId: "mine" })));
    expect(again).toMatchObject({ outcome: "existing", txId, nonce: null, state: "CREATED" });
    owner.store.resume();
    await world.allSettled(1);
    expect(world.rows()).toMatchObject([{ txId, nonce: 0 }]);
  });
});

describe("creates enqueued for one unresponsive owner", () => {
  // protects [Replicas that embed the library] src/application/cluster/pending-creates.ts, src/application/cluster/pending-requests.ts, src/adapters/postgres/statements/left-request.ts
  it("are refused with QUEUE_FULL beyond the limit", async () => {
    const { other, owner, signer } = await pair({ node: { queueLimit: 5 } });
    owner.store.pause();
    const asked = Array.from({ length: 8 }, (_, nonce) => either(send(other, named(signer, nonce))));
    const codes = (await world.settle(Promise.all(asked))).map((result) => (result as FencepostError).code);
    expect(codes.filter((code) => code === "QUEUE_FULL")).toHaveLength(3);
    expect(codes.filter((code) => code === "UNAVAILABLE")).toHaveLength(5);
  });
});
