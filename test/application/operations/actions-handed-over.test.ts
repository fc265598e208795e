import { afterEach, describe, expect, it } from "vitest";
import { OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld, startTwo } from "../../support/operations.ts";
import { CHAIN_ID, SIGNER, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

const LANE = { chainId: CHAIN_ID, signer: SIGNER };

async function withOneSent() {
  const { owner, other, ...started } = await startTwo();
  ({ world, ops } = started);
  world.holdBlocks();
  return { owner, other, txId: await ops.sent(owner) };
}

type Commit = WorldNode["store"]["commit"];

/** Lets `divert` replace the store's commit for the next reprice. */
function divertReprice({ store }: WorldNode, divert: (commit: Commit) => Commit): void {
  const commit = store.commit.bind(store);
  store.commit = (writes) => {
    const isReprice = writes.some((write) => write.kind === "transition" && write.items[0]?.event === "reprice");
    if (!isReprice) return commit(writes);
    store.commit = commit;
    return divert(commit)(writes);
  };
}

/**
 * The owner shuts down while a reprice is on its way to the database. The commit arrives while its fencing token is
 * still valid.
 */
function handOverMeanwhile(owner: WorldNode, answer: "is confirmed" | "is not confirmed"): void {
  divertReprice(owner, (commit) => async (writes) => {
    void owner.node.close();
    await world.until(() => owner.node.gauges().lanesHeld === 0);
    if (answer === "is not confirmed") owner.store.failNextCommit("unknown-committed");
    return commit(writes);
  });
}

/**
 * The owner shuts down before it gets the response to a reprice. The commit still reaches the database, `afterMs`
 * later.
 */
function commitLate(owner: WorldNode, afterMs: number): void {
  const { store } = owner;
  const [release, retire] = [store.releaseLane.bind(store), store.retireInstance.bind(store)];
  divertReprice(owner, (commit) => async (writes) => {
    void owner.node.close();
    const landing = world.clock.sleep(afterMs).then(() => commit(writes));
    // As in PostgreSQL, the lane's row stays locked until the commit of the reprice has ended, so the release of the
    // lane waits for it.
    store.releaseLane = (fence) => landing.then(() => release(fence));
    store.retireInstance = (instanceId) => landing.then(() => retire(instanceId));
    await world.clock.sleep(20);
    throw new OutcomeUnknown("the connection broke");
  });
}

function forward({ node }: WorldNode, txId: string, more: object = {}) {
  const actionRequest = { action: "reprice", txId, request: { reason: "because" }, actor: "operator:ops" };
  return world.settle(node.actions.receive(LANE, { action: "act", body: { ...actionRequest, ...more }, owner: null }));
}

async function expectOnceAndMined(txId: string): Promise<void> {
  await world.clock.advance(5_000);
  expectOnce(txId);
  world.releaseBlocks();
  await ops.settled(txId);
  expect(ops.outcome(txId)).toBe("CONFIRMED");
  checkInvariants(world);
}

function expectOnce(txId: string): void {
  expect(ops.kinds(txId)).toEqual(["initial", "reprice"]);
  expect(ops.decisions(txId)).toEqual(["reprice by operator:ops: reprice"]);
}

describe("an action during a handover of its lane", () => {
  it.each([
    ["the owner", "is confirmed"],
    ["the owner", "is not confirmed"],
    ["another node", "is confirmed"],
    ["another node", "is not confirmed"],
    // protects [Operators] src/application/operations/transaction-actions.ts
  ] as const)("is performed once if %s receives the request and the commit %s", async (asked, answer) => {
    const { owner, other, txId } = await withOneSent();
    handOverMeanwhile(owner, answer);
    const view = await ops.act(asked === "the owner" ? owner : other, "reprice", { txId });
    expect(view.attempts.map(({ kind }) => kind)).toEqual(["initial", "reprice"]);
    await world.until(() => world.ownerOf(SIGNER) === other.url.replace("http://", ""));
    await expectOnceAndMined(txId);
  });

  it.each(["is confirmed", "is not confirmed"] as const)(
    // protects [Operators] src/application/operations/transaction-actions.ts
    "is reported as done by the old owner if the commit %s",
    async (answer) => {
      const { owner, txId } = await withOneSent();
      handOverMeanwhile(owner, answer);
      expect(await forward(owner, txId)).toEqual({ answer: null });
      await expectOnceAndMined(txId);
    },
  );

  it.each(["the owner", "another node"] as const)(
    // protects [Operators] src/application/operations/transaction-actions.ts
    "is performed once if %s received the request and the commit came late",
    async (asked) => {
      const { owner, other, txId } = await withOneSent();
      commitLate(owner, 300);
      await ops.act(asked === "the owner" ? owner : other, "reprice", { txId });
      expect(world.ownerOf(SIGNER)).toBe(other.url.replace("http://", ""));
      await expectOnceAndMined(txId);
    },
  );
});

describe("an unconfirmed action on a released lane", () => {
  async function inDoubt(options: WorldOptions = {}) {
    world = new World(options);
    ops = new OperatedWorld(world);
    const owner = await world.startNode();
    world.holdBlocks();
    const txId = await ops.sent(owner);
    commitLate(owner, LATE_MS);
    return { owner, txId };
  }
  const LATE_MS = 500;
  const UNKNOWN = {
    code: "UNAVAILABLE",
    extras: { outcome: "unknown" },
    message: expect.not.stringContaining("nothing was accepted"),
  };

  it.each(["worker-queue", "basic"] as const)(
    // protects [Operators] src/application/lane/between-owners.ts, src/application/operations/transaction-actions.ts, src/application/operations/lane-actions.ts
    "has an unknown outcome if there is no next owner (%s mode)",
    async (mode) => {
      const { owner, txId } = await inDoubt({ node: { mode } });
      const answer = await ops.act(owner, "reprice", { txId }).catch((error: unknown) => error);
      expect(ops.kinds(txId)).toEqual(["initial"]);
      expect(answer).toMatchObject(UNKNOWN);
      await world.clock.advance(LATE_MS);
      expectOnce(txId);
    },
  );

  // protects [Operators] src/application/lane/between-owners.ts, src/application/operations/transaction-actions.ts, src/application/operations/lane-actions.ts
  it("is reported to the forwarding node as possibly done", async () => {
    const { owner, txId } = await inDoubt();
    const result = await forward(owner, txId);
    expect(result).toMatchObject({ ...UNKNOWN, code: "NOT_LEADER" });
  });

  // protects [Operators] src/application/lane/between-owners.ts, src/application/operations/transaction-actions.ts, src/application/operations/lane-actions.ts
  it("has an unknown outcome if the database cannot be read", async () => {
    const { owner, txId } = await inDoubt();
    const { history } = owner.store;
    owner.store.history = async (id) => {
      if (owner.node.gauges().lanesHeld === 0) throw new StoreUnavailable("away");
      return history.call(owner.store, id);
    };
    await expect(ops.act(owner, "reprice", { txId })).rejects.toMatchObject(UNKNOWN);
  });
});

describe("the id of a forwarded action", () => {
  // protects [Operators] src/application/operations/transaction-actions.ts
  it("makes a repeated request count as the same action", async () => {
    const { owner, txId } = await withOneSent();
    const decisionId = "01890000-0000-7000-8000-000000000001";
    expect(await forward(owner, txId, { decisionId })).toEqual({ answer: null });
    expect(await forward(owner, txId, { decisionId })).toEqual({ answer: null });
    expectOnce(txId);
    expect(ops.row(txId).history.at(-1)?.decision?.audit).toMatchObject({ decisionId });
    expect(await forward(owner, txId)).toEqual({ answer: null });
    expect(ops.kinds(txId)).toEqual(["initial", "reprice", "reprice"]);
  });

  it.each([7, "", "an id", null])("must be a UUID: %j is refused, and nothing is done", async (decisionId) => {
    const { owner, txId } = await withOneSent();
    const result = await forward(owner, txId, { decisionId });
    expect(result).toMatchObject({ code: "INVALID_REQUEST", extras: { path: "decisionId" } });
    expect(ops.kinds(txId)).toEqual(["initial"]);
  });
});
