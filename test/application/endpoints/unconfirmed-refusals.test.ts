import { afterEach, describe, expect, it, vi } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import type { Intent } from "../../../src/domain/transaction/transaction.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { Faults } from "../../doubles/simulated-chain/faults.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { forSigner } from "../../support/policies.ts";
import { CHAIN_ID, SIGNER, TO, transfer, World, type WorldNode } from "../../support/world.ts";

const CONTRACT = `0x${"cc".repeat(20)}` as const;
const entropy = createSeededEntropy(7);

let world: World;
let faults: Faults;
afterEach(() => world.close());

/** Starts a node with two endpoints. `entry.faults` controls the first, `faults` the second. */
async function twoEndpoints(): Promise<WorldNode> {
  world = new World({ policies: forSigner(SIGNER, { requireApproval: { aboveValue: "100", expiresAfter: "1h" } }) });
  faults = new Faults();
  return world.startNode({ elsewhere: { chain: world.chain, faults } });
}

async function oneEndpoint(): Promise<WorldNode> {
  world = new World();
  return world.startNode();
}

function intent(payload: object = { to: TO, value: "1" }, more: object = {}): Intent {
  const request = transfer({ payload, ...more });
  return normalise({ codec: createCodec(), entropy, chainIds: [CHAIN_ID] }, request);
}

const write = (...intents: readonly Intent[]) => {
  for (const each of intents) world.database.insertIntake(each);
};
const statusOf = async ({ node }: WorldNode, txId: string) => {
  const { state, subState, nonce } = await world.settle(node.api.transaction(txId));
  return { state, subState, nonce };
};
const waits = { state: "CREATED", nonce: null };
const rejected = { state: "FAILED_FINAL", subState: "REJECTED", nonce: null };
const alerts = ({ events }: WorldNode) =>
  events.filter((event) => event.type === "alert" && event.code === "RPC_DISAGREES");

describe("a queued create that one of two endpoints refuses", () => {
  // protects [Holes] src/domain/chain/unconfirmed-refusal.ts, src/application/detours/intake.ts, src/application/stages/1-create/prepare.ts
  it("is not rejected because of a zero balance", async () => {
    const entry = await twoEndpoints();
    const create = transfer({ payload: { to: TO, value: "500" } });
    const { txId } = await world.settle(entry.node.api.create(create, "ann"));
    entry.faults.lieAboutBalance(() => 0n);
    const approve = { action: "approve", txId, request: { reason: "yes" }, actor: "operator:bob" } as const;
    await world.settle(entry.node.api.act(approve));
    await world.clock.advance(60_000);
    expect(await statusOf(entry, txId)).toMatchObject(waits);
    expect(alerts(entry)).toMatchObject([{ severity: "ERROR", txId }]);
    const { causes, help } = await world.settle(entry.node.api.explain(txId));
    expect(causes[0]).toMatchObject({ code: "REFUSAL_UNCONFIRMED", data: { waitsFor: "agreement" } });
    expect(causes[0]?.text).toContain("another endpoint, which would accept it");
    expect(help.map(({ code }) => code)).toContain("CHECK_RPC");
    const { items } = await world.settle(entry.node.api.attention());
    expect(items.filter(({ code }) => code === "RPC_DISAGREES")).toMatchObject([{ txId }]);
    entry.faults.lieAboutBalance(null);
    await world.allSettled(1);
    expect(await statusOf(entry, txId)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    checkInvariants(world);
  });

  // protects [Holes] src/application/detours/intake.ts, src/application/lane/unconfirmed-refusals.ts, src/adapters/postgres/statements/intake.ts
  it("is not rejected because of a revert", async () => {
    const entry = await twoEndpoints();
    entry.faults.lieAboutReverts(CONTRACT);
    const [refused, behind, later] = [intent({ to: CONTRACT, value: "1" }), intent(), intent()];
    write(refused, behind);
    await world.allSettled(1);
    write(later);
    await world.allSettled(2);
    expect(await statusOf(entry, behind.txId)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    expect(await statusOf(entry, later.txId)).toMatchObject({ state: "CONFIRMED", nonce: 1 });
    expect(await statusOf(entry, refused.txId)).toMatchObject(waits);
    entry.faults.lieAboutReverts(null);
    await world.allSettled(3);
    expect(await statusOf(entry, refused.txId)).toMatchObject({ state: "CONFIRMED", nonce: 2 });
    checkInvariants(world);
  });

  it("delays newer intake rows only briefly", async () => {
    const entry = await twoEndpoints();
    const { rpc } = entry;
    const prospects = rpc.prospects.bind(rpc);
    rpc.prospects = async (call) => {
      await world.clock.sleep(100);
      return prospects(call);
    };
    entry.faults.lieAboutReverts(CONTRACT);
    const refused = Array.from({ length: 250 }, () => intent({ to: CONTRACT, value: "1" }));
    write(...refused);
    await world.clock.advance(60_000);
    const later = intent();
    write(later);
    await world.until(() => world.rows().some(({ txId }) => txId === later.txId), 10_000);
    entry.faults.lieAboutReverts(null);
    await world.allSettled(refused.length + 1);
    expect(await statusOf(entry, (refused.at(-1) as Intent).txId)).toMatchObject({ state: "CONFIRMED" });
  });

  // protects [Holes] src/domain/chain/unconfirmed-refusal.ts, src/application/detours/intake.ts, src/application/stages/1-create/prepare.ts
  it("is not rejected because of a base fee or gas price", async () => {
    const entry = await twoEndpoints();
    const [priced, bare] = [
      intent({ to: TO, value: "1", gas: 21_000, maxFeePerGas: "9000000000", maxPriorityFeePerGas: "1" }),
      intent(),
    ];
    entry.faults.lieAboutFees({ baseFee: 10n ** 15n, price: 10n ** 15n });
    await world.clock.advance(5_000);
    write(priced, bare);
    await world.clock.advance(30_000);
    for (const { txId } of [priced, bare]) expect(await statusOf(entry, txId)).not.toMatchObject(rejected);
  });

  it("is rejected if the other endpoint refuses it too", async () => {
    const entry = await twoEndpoints();
    entry.faults.lieAboutReverts(CONTRACT);
    faults.lieAboutBalance(() => 0n);
    const refused = intent({ to: CONTRACT, value: "1" });
    write(refused);
    await world.allSettled(1);
    expect(await statusOf(entry, refused.txId)).toMatchObject(rejected);
    expect(alerts(entry)).toEqual([]);
  });

  // protects [Holes] src/domain/chain/unconfirmed-refusal.ts, src/application/detours/intake.ts, src/application/stages/1-create/prepare.ts
  it("waits for an endpoint that lags behind", async () => {
    const entry = await twoEndpoints();
    world.chain.revertCallsTo(CONTRACT, "0x");
    faults.pinHead(world.chain.head.number);
    await world.clock.advance(5_000);
    const refused = intent({ to: CONTRACT, value: "1" });
    write(refused);
    await world.clock.advance(20_000);
    expect(await statusOf(entry, refused.txId)).toMatchObject(waits);
    expect((await world.settle(entry.node.api.explain(refused.txId))).causes[0]).toMatchObject({
      code: "REFUSAL_UNCONFIRMED",
      data: { waitsFor: "behind" },
    });
    faults.pinHead(null);
    const heal = faults.inject({ kind: "unavailable" });
    await world.clock.advance(20_000);
    expect(await statusOf(entry, refused.txId)).toMatchObject(waits);
    heal();
    await world.allSettled(1);
    expect(await statusOf(entry, refused.txId)).toMatchObject(rejected);
  });

  it("is retried, unlike a new create, which is refused at once", async () => {
    const entry = await twoEndpoints();
    entry.faults.lieAboutReverts(CONTRACT);
    const create = transfer({ payload: { to: CONTRACT, value: "1" } });
    expect(await world.refusal(entry.node.api.create(create))).toMatchObject({ code: "SUBMISSION_REJECTED" });
    expect(world.database.state.intake.size).toBe(0);
  });
});

describe("a queued create that the only endpoint refuses", () => {
  // protects [Holes] src/domain/chain/unconfirmed-refusal.ts, src/application/detours/intake.ts, src/application/stages/1-create/prepare.ts
  it("is rejected if it is refused again at a later block", async () => {
    const entry = await oneEndpoint();
    world.chain.revertCallsTo(CONTRACT, "0x");
    world.holdBlocks();
    const refused = intent({ to: CONTRACT, value: "1" });
    write(refused);
    await world.clock.advance(60_000);
    expect(await statusOf(entry, refused.txId)).toMatchObject(waits);
    const { causes, help } = await world.settle(entry.node.api.explain(refused.txId));
    expect(causes[0]).toMatchObject({ code: "REFUSAL_UNCONFIRMED", data: { waitsFor: "laterBlock" } });
    expect(help.map(({ code }) => code)).toEqual(["WAIT"]);
    world.chain.mine();
    await world.allSettled(1);
    expect(await statusOf(entry, refused.txId)).toMatchObject(rejected);
    checkInvariants(world);
  });

  // protects [Holes] src/application/detours/intake.ts, src/application/lane/unconfirmed-refusals.ts, src/adapters/postgres/statements/intake.ts
  it("is rejected at the second check even if its gas is set", async () => {
    const entry = await oneEndpoint();
    world.chain.revertCallsTo(CONTRACT, "0x");
    world.holdBlocks();
    const refused = intent({
      to: CONTRACT,
      value: "1",
      gas: 50_000,
      maxFeePerGas: "20000000000",
      maxPriorityFeePerGas: "1",
    });
    write(refused);
    await world.clock.advance(5_000);
    write(intent(), intent());
    await world.clock.advance(5_000);
    expect(world.rows()).toHaveLength(2);
    world.chain.mine();
    write(intent());
    await world.allSettled(1);
    expect(await statusOf(entry, refused.txId)).toMatchObject(rejected);
    world.releaseBlocks();
    await world.allSettled(4);
    checkInvariants(world);
  });

  it("is sent if the endpoint accepts it at the next block", async () => {
    const entry = await oneEndpoint();
    world.holdBlocks();
    entry.faults.lieAboutBalance(() => 0n);
    const accepted = intent();
    write(accepted);
    await world.clock.advance(10_000);
    expect(await statusOf(entry, accepted.txId)).toMatchObject(waits);
    entry.faults.lieAboutBalance(null);
    world.chain.mine();
    await world.clock.advance(5_000);
    world.releaseBlocks();
    await world.allSettled(1);
    expect(await statusOf(entry, accepted.txId)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
  });

  // protects [Holes] src/application/detours/intake.ts, src/application/lane/unconfirmed-refusals.ts, src/adapters/postgres/statements/intake.ts
  it("is checked once per block", async () => {
    const entry = await oneEndpoint();
    world.chain.revertCallsTo(CONTRACT, "0x");
    const prospects = vi.spyOn(entry.rpc, "prospects");
    world.holdBlocks();
    write(intent({ to: CONTRACT, value: "1" }));
    await world.clock.advance(60_000);
    expect(prospects).toHaveBeenCalledTimes(1);
  });

  it("is checked again from the beginning by the next owner", async () => {
    const entry = await oneEndpoint();
    world.chain.revertCallsTo(CONTRACT, "0x");
    world.holdBlocks();
    const refused = intent({ to: CONTRACT, value: "1" });
    write(refused);
    await world.clock.advance(5_000);
    await world.settle(entry.node.close());
    world.chain.mine();
    const heir = await world.startNode();
    await world.clock.advance(5_000);
    expect(await statusOf(heir, refused.txId)).toMatchObject(waits);
    world.chain.mine();
    await world.allSettled(1);
    expect(await statusOf(heir, refused.txId)).toMatchObject(rejected);
    const { items } = await world.settle(heir.node.api.completions({ after: 0 }));
    expect(items.filter(({ txId }) => txId === refused.txId)).toHaveLength(1);
  });

  it("expires at its validUntil while it waits", async () => {
    const entry = await oneEndpoint();
    world.chain.revertCallsTo(CONTRACT, "0x");
    world.holdBlocks();
    const validUntil = new Date(world.clock.now().getTime() + 20_000).toISOString();
    const refused = intent({ to: CONTRACT, value: "1" }, { validUntil });
    write(refused);
    await world.clock.advance(10_000);
    expect(await statusOf(entry, refused.txId)).toMatchObject(waits);
    await world.clock.advance(30_000);
    expect(await statusOf(entry, refused.txId)).toMatchObject({ state: "FAILED_FINAL", subState: "EXPIRED" });
  });
});
