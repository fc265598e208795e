/**
 * A key service that is unreachable, slow to recover, or signs something else: an alert is raised, requests are retried
 * with growing pauses, and nothing is lost.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { UnsignedTransaction } from "../../../src/domain/transaction/transaction.ts";
import { OutcomeUnknown } from "../../../src/ports/lane-store.ts";
import { SignerAway, SigningRefused } from "../../../src/ports/signer.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { SIGNER, SIGNERS, TO, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function start(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  return world.startNode();
}

/** From now on, nothing is signed for the first signer. Counts the signing requests for it. */
function takeAway({ signer }: WorldNode, failure: () => Error = () => new Error("connection refused")) {
  const sign = signer.sign.bind(signer);
  const state = { asked: 0, isAway: true };
  signer.sign = async (address, transactions) => {
    if (!state.isAway || address !== SIGNER) return sign(address, transactions);
    state.asked++;
    throw failure();
  };
  return state;
}

const codes = ({ events }: WorldNode) => events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
const reloads = ({ events }: WorldNode) => events.filter(({ type }) => type === "lane.stopped").length;

describe("an unreachable signer", () => {
  // protects [Signers] src/application/stages/3-sign/sign.ts, src/domain/pace/lane-pace.ts
  it("is retried a few times a minute with growing pauses, without reloading its lane", async () => {
    const node = await start();
    const state = takeAway(node);
    const { txId } = await world.settle(node.node.api.create(transfer()));
    await world.until(() => state.asked > 0);
    await world.clock.advance(60_000);
    const first = state.asked;
    expect(first).toBeGreaterThan(5);
    expect(first).toBeLessThan(20);
    await world.clock.advance(60_000);
    expect(state.asked - first).toBeLessThan(7);
    expect(reloads(node)).toBe(0);
    expect(codes(node)).toEqual(["SIGNER_AWAY"]);
    expect(ops.row(txId)).toMatchObject({ state: "ALLOCATED", nonce: 0 });
  });

  // protects [Signers] src/application/stages/3-sign/sign.ts
  it("still counts as unreachable after a refusal that did not use its key", async () => {
    const node = await start();
    let refuses = false;
    const state = takeAway(node, () => {
      refuses = !refuses;
      return refuses ? new Error("connection refused") : new SigningRefused(0, "signed with another payload", true);
    });
    await world.settle(node.node.api.create(transfer()));
    await world.until(() => state.asked > 0);
    await world.clock.advance(60_000);
    expect(state.asked).toBeLessThan(30);
    expect(codes(node)).toEqual(["SIGNER_AWAY"]);
    state.isAway = false;
    await world.allSettled(1, 60_000);
    expect(codes(node)).toEqual(["SIGNER_AWAY", "SIGNER_BACK"]);
  });

  // protects [Signers] src/application/stages/3-sign/sign.ts
  it("loses no transaction", async () => {
    const node = await start();
    const state = takeAway(node);
    const waiting = await world.settle(node.node.api.createBatch(Array.from({ length: 5 }, () => transfer())));
    expect(waiting).toMatchObject(waiting.map((_, nonce) => ({ outcome: "created", nonce })));
    await world.settle(node.node.api.create(transfer({ signer: SIGNERS[1] })));
    await world.allSettled(1);
    await world.clock.advance(90_000);
    state.isAway = false;
    await world.allSettled(6, 60_000);
    expect(world.rows().map(({ state }) => state)).toEqual(Array.from({ length: 6 }, () => "CONFIRMED"));
    expect(codes(node)).toEqual(["SIGNER_AWAY", "SIGNER_BACK"]);
    checkInvariants(world);
  });

  // protects [Signers] src/application/stages/3-sign/sign.ts, src/application/queries/signers.ts, src/application/queries/readiness.ts
  it("is named as the cause in the explanation of a waiting transaction", async () => {
    const node = await start();
    const state = takeAway(node);
    const { txId } = await world.settle(node.node.api.create(transfer()));
    await world.until(() => state.asked > 1);
    const explained = await world.settle(node.node.api.explain(txId));
    expect(explained.causes.map(({ code }) => code)).toEqual(["SIGNER_AWAY"]);
    expect(explained.causes[0]).toMatchObject({
      text: expect.stringContaining("connection refused"),
      since: expect.any(Date),
    });
    expect(explained.help.map(({ code }) => code)).toEqual(["CHECK_SIGNER"]);
    expect(await world.settle(node.node.api.readiness())).toMatchObject({
      ready: true,
      chains: [{ signersAway: 1 }],
    });
    const away = { since: expect.any(Date), reason: "connection refused" };
    expect(await world.settle(node.node.api.signer(SIGNER))).toMatchObject([{ signerAway: away }]);
    const { items } = await world.settle(node.node.api.signers());
    expect(items.filter(({ signerAway }) => signerAway !== null).map(({ address }) => address)).toEqual([SIGNER]);
    state.isAway = false;
    await world.allSettled(1);
    expect(await world.settle(node.node.api.readiness())).toMatchObject({ chains: [{ signersAway: 0 }] });
    expect((await world.settle(node.node.api.explain(txId))).causes.map(({ code }) => code)).toEqual(["CONFIRMED"]);
  });

  // protects [Signers] src/application/stages/3-sign/sign.ts, src/adapters/evm/signers/remote/key-service.ts
  it("loses no signature that it had returned for part of a batch", async () => {
    const node = await start();
    const { signer } = node;
    const sign = signer.sign.bind(signer);
    let isAway = true;
    signer.sign = async (address, transactions) => {
      if (!isAway) return sign(address, transactions);
      throw new SignerAway("throttled", { signed: await sign(address, transactions.slice(0, 2)) });
    };
    world.holdBlocks();
    await world.settle(node.node.api.createBatch(Array.from({ length: 5 }, () => transfer())));
    await world.until(() => codes(node).includes("SIGNER_AWAY"));
    await world.until(() => world.rows().filter(({ subState }) => subState === "BROADCAST").length >= 2);
    isAway = false;
    world.releaseBlocks();
    await world.allSettled(5);
    expect(world.rows().every(({ attempts }) => attempts.length === 1)).toBe(true);
    checkInvariants(world);
  });

  // protects [Signers] src/application/stages/3-sign/sign.ts, src/domain/pace/lane-pace.ts
  it("is not called at every resubmission", async () => {
    const node = await start({ settings: { resubmitIntervalMs: 2_000 } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    world.chain.setBaseFee(40_000_000_000n);
    const state = takeAway(node);
    world.chain.mine();
    await world.clock.advance(60_000);
    expect(state.asked).toBeGreaterThan(0);
    expect(state.asked).toBeLessThan(20);
    expect(reloads(node)).toBe(0);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    expect(codes(node).filter((code) => code === "SIGNER_AWAY")).toHaveLength(1);
    state.isAway = false;
    await world.until(() => ops.kinds(txId).length === 2);
    world.releaseBlocks();
    await ops.settled(txId);
  });

  // protects [Signers] src/application/detours/change-payload.ts
  it("makes an operator's action fail with 503 and the signer's error", async () => {
    const node = await start();
    world.holdBlocks();
    const txId = await ops.sent(node);
    const state = takeAway(node);
    const refused = { code: "UNAVAILABLE", message: expect.stringContaining("connection refused") };
    await expect(ops.act(node, "cancel", { txId })).rejects.toMatchObject(refused);
    const { asked } = state;
    // During the pause between retries, the signer gets no request.
    await expect(ops.act(node, "cancel", { txId })).rejects.toMatchObject(refused);
    expect(state.asked).toBe(asked);
    state.isAway = false;
    await world.clock.advance(60_000);
    await ops.act(node, "cancel", { txId });
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
  });

  // protects [Signers] src/application/stages/3-sign/sign.ts, src/domain/pace/lane-pace.ts
  it("causes no repeated reloads of a lane with a nonce gap", async () => {
    const node = await start({ settings: { holePolicy: "heal" } });
    world.holdBlocks();
    await world.settle(node.node.api.create(transfer()));
    await world.settle(node.node.api.reserveNonce({ signer: SIGNER, ttl: "1s" }));
    await ops.sent(node);
    const state = takeAway(node);
    world.releaseBlocks();
    await world.clock.advance(60_000);
    expect(state.asked).toBeGreaterThan(0);
    expect(state.asked).toBeLessThan(25);
    expect(reloads(node)).toBe(0);
    state.isAway = false;
    await world.allSettled(3, 120_000);
    checkInvariants(world);
  });
});

describe("an unreachable signer that must sign a transaction again with less gas", () => {
  // protects [Signers] src/application/detours/reprice.ts
  it("leaves the transaction waiting", async () => {
    const [cap, needed] = [16_777_216n, 14_191_170n];
    const node = await start({ settings: { holePolicy: "move" }, chain: { transactionGasCap: cap } });
    world.chain.burnGasAt(TO, needed - 21_064n);
    const { signer } = node;
    const sign = signer.sign.bind(signer);
    let signed = 0;
    let isAway = true;
    signer.sign = async (address, transactions) => {
      if (signed > 0 && isAway) throw new Error("connection refused");
      signed++;
      return sign(address, transactions);
    };
    const request = { signer: SIGNER, payload: { to: TO, data: "0xaabbccdd" } };
    const { txId } = await world.settle(node.node.api.create(request));
    await world.until(() => codes(node).includes("SIGNER_AWAY"));
    await world.clock.advance(60_000);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    isAway = false;
    await world.allSettled(1);
    expect(ops.row(txId)).toMatchObject({
      state: "CONFIRMED",
      attempts: [{ kind: "initial" }, { kind: "reprice", gas: cap }],
    });
    // The transaction does not become STUCK while the signer is unreachable, because that says nothing about the
    // transaction's price.
    expect(world.database.state.completions.map(({ state }) => state)).toEqual(["CONFIRMED"]);
  });
});

describe("a signer that returns a wrong signature", () => {
  // protects [Signers] src/application/stages/3-sign/sign.ts
  it("is reported as SIGNER_LIES instead of SIGNER_AWAY", async () => {
    const node = await start();
    const state = takeAway(node, () => new SignerAway("it signed another receiver", { lies: true }));
    const { txId } = await world.settle(node.node.api.create(transfer()));
    await world.until(() => state.asked > 0);
    await world.clock.advance(30_000);
    expect(codes(node)).toEqual(["SIGNER_LIES"]);
    expect(ops.row(txId).attempts).toEqual([]);
    state.isAway = false;
    await world.allSettled(1);
  });
});

describe("a signer whose signatures differ each time", () => {
  // protects [Signers] src/application/stages/3-sign/sign.ts, src/application/lane/term.ts
  it("signs again if the outcome of a commit is unknown", async () => {
    const node = await start();
    const { signer, store } = node;
    const made: string[] = [];
    const sign = signer.sign.bind(signer);
    signer.sign = async (address, transactions: readonly UnsignedTransaction[]) => {
      const signed = await sign(address, transactions);
      made.push(...signed.map(({ txHash }) => txHash));
      return signed;
    };
    // The first commit that stores a signed attempt is not carried out. The second one is carried out, but its response
    // is lost.
    const results = ["lost", "unheard"];
    const commit = store.commit.bind(store);
    store.commit = async (writes) => {
      const isAttempt = writes.some(
        ({ kind, ...write }) => kind === "transition" && "items" in write && "attempt" in (write.items[0] ?? {}),
      );
      const result = isAttempt ? results.shift() : undefined;
      if (result === "lost") throw new OutcomeUnknown("the connection died at COMMIT");
      const committed = await commit(writes);
      if (result === "unheard") throw new OutcomeUnknown("the connection died at COMMIT");
      return committed;
    };
    await world.settle(node.node.api.create(transfer()));
    await world.allSettled(1);
    await world.settle(node.node.api.create(transfer()));
    await world.allSettled(2);
    const stored = world.rows().flatMap(({ attempts }) => attempts.map(({ txHash }) => txHash));
    expect(stored).toEqual([made[1], made[2]]);
    expect(new Set(made).size).toBe(3);
    expect(world.rows().map(({ receipt }) => receipt?.txHash)).toEqual(stored);
    checkInvariants(world);
  });
});
