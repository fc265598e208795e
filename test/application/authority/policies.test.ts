import { serializeTransaction } from "viem";
import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import { feeCap } from "../../../src/domain/transaction/fees.ts";
import type { UnsignedTransaction } from "../../../src/domain/transaction/transaction.ts";
import type { StuckDecision } from "../../../src/ports/stuck-hook.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { GETH_POOL } from "../../doubles/simulated-chain/pool.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";
import {
  CHAIN_ID,
  SIGNER,
  SIGNERS,
  TO,
  transfer,
  World,
  type WorldNode,
  type WorldOptions,
} from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

const GWEI = 1_000_000_000n;
/** Highest possible cost of `transfer` in wei: 21,000 gas at no more than 20 gwei, plus a value of one wei. */
const WORST = 21_000n * 20n * GWEI + 1n;
const OTHER = `0x${"c".repeat(40)}` as const;

async function start(
  policy: object,
  options: WorldOptions = {},
  node: Parameters<World["startNode"]>[0] = {},
): Promise<WorldNode> {
  world = new World({ ...options, policies: options.policies ?? forSigner(SIGNER, policy) });
  ops = new OperatedWorld(world);
  return world.startNode(node);
}

/** Signs a transaction outside Fencepost, as a caller or a hook does. */
async function signed(content: Partial<UnsignedTransaction>): Promise<Hex> {
  const fees = { type: "eip1559", maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI } as const;
  const usual = {
    chainId: CHAIN_ID,
    nonce: 0,
    to: TO,
    value: 1n,
    gas: 21_000n,
    accessList: [],
    data: "0x",
    fees,
  } as const;
  const [made] = await new FakeSigner(SIGNERS).sign(SIGNER, [{ ...usual, ...content }]);
  return made?.rawTransaction as Hex;
}

/**
 * A blob transaction as `FakeSigner` would sign it if it supported blobs: one blob, with a blob fee of at most one
 * gwei.
 */
function blobAt(nonce: number): Hex {
  const fees = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI, maxFeePerBlobGas: GWEI };
  const said = { type: "eip4844", chainId: CHAIN_ID, nonce, to: TO, value: 0n, gas: 21_000n, ...fees } as const;
  const signature = { r: `0x${SIGNER.slice(2).padStart(64, "0")}`, s: `0x${"1".padStart(64, "0")}` } as const;
  const blobVersionedHashes = [`0x01${"00".repeat(31)}`] as const;
  return serializeTransaction({ ...said, blobVersionedHashes }, { ...signature, yParity: 0 });
}

const refusal = (promise: Promise<unknown>) => world.refusal(promise);

function forbidden(rule: string) {
  return { code: "FORBIDDEN", status: 403, extras: { rule } };
}

const used = async ({ node }: WorldNode) => (await world.settle(node.api.policyUsage())).signers[0];
const to = (receiver: string) => transfer({ payload: { ...(transfer().payload as object), to: receiver } });

describe("a policy", () => {
  // protects [Attacks] src/domain/ledger/allocate.ts, src/domain/policy/policy.ts
  it("refuses a create with 403 and the violated rule, and consumes no nonce", async () => {
    const entry = await start({ to: [TO], selectors: ["0x"] });
    expect(await refusal(entry.node.api.create(to(OTHER)))).toMatchObject(forbidden("signer.to"));
    world.chain.burnGasAt(TO, 0n);
    const call = { ...(transfer().payload as object), data: "0xa9059cbb", gas: 30_000 };
    const refused = entry.node.api.create(transfer({ payload: call }));
    expect(await refusal(refused)).toMatchObject(forbidden("signer.selectors"));
    const { nonce } = await world.settle(entry.node.api.create(transfer()));
    expect(nonce).toBe(0);
    await world.allSettled(1);
    checkInvariants(world);
  });

  // protects [Attacks] src/domain/ledger/allocate.ts, src/domain/policy/policy.ts
  it("refuses one item of a batch and accepts the others", async () => {
    const entry = await start({ to: [TO] });
    const results = await world.settle(entry.node.api.createBatch([transfer(), to(OTHER), transfer()]));
    expect(results).toMatchObject([{ nonce: 0 }, forbidden("signer.to"), { nonce: 1 }]);
  });

  // protects [Attacks] src/domain/policy/charges.ts
  it("counts a transaction's worst-case cost until the transaction is final", async () => {
    const entry = await start({ maxCost: { perHour: `${2n * WORST - 1n}` } });
    world.holdBlocks();
    await world.settle(entry.node.api.create(transfer()));
    expect((await used(entry))?.hour).toMatchObject({ value: 1n, cost: WORST, maxCost: 2n * WORST - 1n });
    expect(await refusal(entry.node.api.create(transfer()))).toMatchObject(forbidden("signer.maxCost.perHour"));
    world.releaseBlocks();
    await world.allSettled(1);
    const { receipt } = ops.row(world.rows()[0]?.txId ?? "");
    const paid = 1n + (receipt?.gasUsed ?? 0n) * (receipt?.effectiveGasPrice ?? 0n);
    expect((await used(entry))?.hour.cost).toBe(paid);
    expect(paid).toBeLessThan(WORST);
    await world.settle(entry.node.api.create(transfer()));
    await world.allSettled(2);
    checkInvariants(world);
  });

  // protects [Attacks] src/application/stages/7-complete/complete.ts, src/domain/policy/charges.ts, src/adapters/evm/reads/agree.ts
  it("counts a transaction's maximum blob cost until the transaction is final", async () => {
    const worst = 21_000n * 20n * GWEI + 131_072n * GWEI;
    const entry = await start({ maxCost: { perDay: `${worst}` } });
    const submit = (nonce: number) => entry.node.api.submitSigned({ chainId: CHAIN_ID, rawTransaction: blobAt(nonce) });
    await world.settle(submit(0));
    expect((await used(entry))?.day).toMatchObject({ value: 0n, cost: worst });
    await world.allSettled(1);
    const { receipt } = ops.row(world.rows()[0]?.txId ?? "");
    const paid = (receipt?.gasUsed ?? 0n) * (receipt?.effectiveGasPrice ?? 0n) + (131_072n * GWEI) / 2n;
    expect((await used(entry))?.day.cost).toBe(paid);
    expect(await refusal(submit(1))).toMatchObject(forbidden("signer.maxCost.perDay"));
    checkInvariants(world);
  });

  // protects [Attacks] src/application/detours/another-attempt.ts
  it("stops automatic fee increases at its limit", async () => {
    const entry = await start(
      { maxCost: { perTransaction: `${WORST + 21_000n * GWEI}` } },
      { settings: { resubmitIntervalMs: 5_000 }, chain: { pool: GETH_POOL } },
    );
    world.chain.setBaseFee(50n * GWEI);
    const txId = await ops.create(entry);
    const said = () => entry.events.some((event) => event.type === "alert" && event.code === "POLICY_LIMIT_REACHED");
    await world.until(said, 60_000);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    expect((await used(entry))?.hour.cost).toBe(WORST);
    world.chain.setBaseFee(GWEI);
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    checkInvariants(world);
  });

  // protects [Attacks] src/application/stages/3-sign/sign.ts
  it("limits the first attempt's fee to the cost already counted, even if market fees have risen", async () => {
    const entry = await start(
      { maxCost: { perDay: `${10n ** 18n}` } },
      { settings: { resubmitIntervalMs: 5_000 }, chain: { pool: GETH_POOL } },
    );
    world.chain.setBaseFee(10n * GWEI);
    await world.clock.advance(2_000);
    await ops.lane(entry, "suspend");
    const unpriced = { payload: { to: TO, value: "1", gas: 21_000 } };
    const txId = await ops.create(entry, unpriced);
    const counted = (await used(entry))?.hour.cost ?? 0n;
    world.chain.setBaseFee(40n * GWEI);
    await world.clock.advance(3_000);
    await ops.lane(entry, "resume");
    await ops.settled(txId);
    const [first, second] = ops.row(txId).attempts.map(({ fees, gas }) => gas * feeCap(fees) + 1n);
    expect(first).toBeLessThanOrEqual(counted);
    expect(second).toBeGreaterThan(counted);
    checkInvariants(world);
  });

  // protects [Attacks] src/application/detours/change-payload.ts, src/domain/ledger/bind.ts
  it("applies to an operator's replacement of a sent or queued transaction, but permits a cancel", async () => {
    const entry = await start({ to: [TO], maxCost: { perDay: `${3n * WORST}` } });
    world.holdBlocks();
    const txId = await ops.sent(entry);
    const replace = (id: string, receiver: string) =>
      ops.act(entry, "replace", {
        txId: id,
        request: { payload: { to: receiver, value: "1", gas: 21_000 } },
      });
    expect(await refusal(replace(txId, OTHER))).toMatchObject(forbidden("signer.to"));
    await ops.act(entry, "cancel", { txId });
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    await ops.lane(entry, "suspend");
    const queued = await ops.create(entry);
    expect(await refusal(replace(queued, OTHER))).toMatchObject(forbidden("signer.to"));
    await ops.act(entry, "cancel", { txId: queued });
    await ops.lane(entry, "resume");
    world.releaseBlocks();
    await ops.settled(txId, queued);
    expect((await used(entry))?.day.value).toBeLessThanOrEqual(1n);
    checkInvariants(world);
  });

  // protects [Attacks] src/application/detours/change-payload.ts, src/domain/ledger/bind.ts
  it("applies to transactions signed by the caller", async () => {
    const entry = await start({ to: [TO], maxCost: { perTransaction: `${WORST}` } });
    const { reservation } = await world.settle(entry.node.api.reserveNonce({ signer: SIGNER }));
    const submit = async (content: Partial<UnsignedTransaction>) => {
      const rawTransaction = await signed({ nonce: reservation.nonce, ...content });
      return entry.node.api.submitReserved(reservation.reservationId, { rawTransaction });
    };
    expect(await refusal(submit({ value: 2n }))).toMatchObject(forbidden("signer.maxCost.perTransaction"));
    expect(await refusal(submit({ to: OTHER }))).toMatchObject(forbidden("signer.to"));
    const { txId } = await world.settle(submit({}));
    await ops.settled(txId);
    checkInvariants(world);
  });

  it.each<[string, () => Promise<StuckDecision>]>([
    ["a payload", async () => ({ action: "REPLACE", reason: "pay somebody else", payload: { to: OTHER, value: "1" } })],
    [
      "bytes that it signed",
      async () => {
        const fees = { type: "eip1559", maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI } as const;
        return { action: "REPLACE", reason: "pay somebody else", rawTransaction: await signed({ to: OTHER, fees }) };
      },
    ],
  ])(
    // protects [Attacks] src/application/detours/change-payload.ts, src/domain/ledger/bind.ts
    "refuses a rule-violating replacement from the hook for stuck transactions, given as %s",
    async (_, decide) => {
      const entry = await start({ to: [TO] }, { settings: { alertHeadAgeMs: 1_000 } }, { stuckHook: { decide } });
      world.holdBlocks();
      const txId = await ops.sent(entry);
      const failed = () => entry.events.find((event) => event.type === "alert" && event.code === "STUCK_HOOK_FAILED");
      await world.until(() => failed() !== undefined, 300_000);
      expect(failed()).toMatchObject({ message: expect.stringContaining("does not allow the receiver") });
      expect(ops.kinds(txId)).toEqual(["initial"]);
    },
  );

  // protects [Attacks] src/application/detours/intake.ts
  it("makes an intake row FAILED_FINAL/REJECTED if the row violates a rule", async () => {
    const entry = await start({ to: [TO] });
    const ports = { codec: createCodec(), entropy: createSeededEntropy(9), chainIds: [CHAIN_ID] };
    const [allowed, refused] = [normalise(ports, transfer()), normalise(ports, to(OTHER))];
    world.database.insertIntake(refused);
    world.database.insertIntake(allowed);
    await world.allSettled(2);
    const view = await world.settle(entry.node.api.transaction(refused.txId));
    expect(view).toMatchObject({ state: "FAILED_FINAL", subState: "REJECTED", nonce: null });
    expect(view.lastError).toContain("(signer.to)");
    expect(ops.row(allowed.txId)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
  });

  it("applies to its API key across all signers and nodes, and to no other key", async () => {
    const policies = policiesOf({ keys: { payments: { maxValue: { perDay: "3" } } } });
    const entry = await start({}, { policies });
    await world.startNode();
    const create = (n: number, owner: string) => entry.node.api.create(transfer({ signer: SIGNERS[n] }), owner);
    await world.settle(Promise.all([0, 1, 2].map((n) => create(n, "payments"))));
    expect(await refusal(create(1, "payments"))).toMatchObject(forbidden("key.maxValue.perDay"));
    await world.settle(create(1, "others"));
    await world.allSettled(4);
    checkInvariants(world);
  });

  it("keeps its counts when another node takes over the lane", async () => {
    const entry = await start({ maxValue: { perDay: "2" } });
    const next = await world.startNode();
    await world.settle(entry.node.api.create(transfer()));
    world.crash(world.ownerOf(SIGNER) === "node-1" ? entry : next);
    const survivor = world.ownerOf(SIGNER) === "node-1" ? next : entry;
    const create = () => survivor.node.api.create(transfer());
    await world.until(() => survivor.node.gauges().lanesHeld === SIGNERS.length);
    await world.settle(create());
    expect(await refusal(create())).toMatchObject(forbidden("signer.maxValue.perDay"));
  });

  it("can be checked in advance by a dry run that counts nothing", async () => {
    const entry = await start({ maxValue: { perTransaction: "1" } });
    const check = (value: string) =>
      world.settle(entry.node.api.checkPolicy(transfer({ payload: { ...(transfer().payload as object), value } })));
    expect(await check("1")).toEqual({ allowed: true, value: 1n, cost: WORST });
    expect(await check("2")).toMatchObject({ allowed: false, rule: "signer.maxValue.perTransaction" });
    expect(await used(entry)).toBeUndefined();
    const { hash, policies } = await entry.node.api.policies();
    expect(hash).toMatch(/^0x[0-9a-f]{64}$/);
    expect(policies).toEqual({ signers: { [SIGNER]: { maxValue: { perTransaction: "1" } } } });
  });

  it("raises one alert after a change, on the first node that starts with the changed policy", async () => {
    const entry = await start({ to: [TO] });
    const next = await world.startNode();
    const changed = ({ events }: WorldNode) =>
      events.filter((event) => event.type === "alert" && event.code === "POLICIES_CHANGED").length;
    expect([entry, next].map(changed)).toEqual([1, 0]);
  });
});

describe("a placeholder transaction", () => {
  const silence = async (policies: object, options: WorldOptions = {}) => {
    const entry = await start({}, { ...options, policies: policiesOf(policies) });
    const signed: number[] = [];
    const sign = entry.signer.sign.bind(entry.signer);
    entry.signer.sign = (signer, transactions) => {
      signed.push(...transactions.map(({ nonce }) => nonce));
      return sign(signer, transactions);
    };
    const { reservation } = await world.settle(entry.node.api.reserveNonce({ signer: SIGNER, ttl: "2s" }, "ann"));
    const behind = await ops.create(entry);
    return { entry, behind, signed, nonce: reservation.nonce };
  };
  const usedByAnn = async ({ node }: WorldNode) => (await world.settle(node.api.policyUsage({ key: "ann" }))).keys[0];

  // protects [Reservations] src/application/detours/another-attempt.ts, src/application/detours/holes.ts
  it("is charged to the key that reserved the nonce, if the reservation expired", async () => {
    const { entry, behind, nonce } = await silence({ keys: { ann: { maxCost: { perDay: `${10n ** 18n}` } } } });
    await world.allSettled(2);
    expect(ops.outcome(behind)).toBe("CONFIRMED");
    const placeholder = world.rows().find((row) => row.nonce === nonce);
    const { gasUsed = 0n, effectiveGasPrice } = placeholder?.receipt ?? {};
    const paid = gasUsed * (effectiveGasPrice ?? 0n);
    expect(paid).toBeGreaterThan(0n);
    expect((await usedByAnn(entry))?.day.cost).toBe(paid);
    checkInvariants(world);
  });

  // protects [Reservations] src/domain/policy/policy.ts, src/adapters/postgres/commit/commands.ts, src/application/detours/reprice.ts, src/application/detours/change-payload.ts
  it("is signed for an expired reservation, even beyond the API key's limits", async () => {
    const most = 1n;
    const { entry, behind, nonce } = await silence({ keys: { ann: { maxCost: { perDay: `${most}` } } } });
    await world.allSettled(2);
    expect(ops.outcome(behind)).toBe("CONFIRMED");
    expect(world.rows().find((row) => row.nonce === nonce)).toMatchObject({ owner: "ann", subState: "CANCELLED" });
    expect((await usedByAnn(entry))?.day.cost).toBeGreaterThan(most);
    expect(await refusal(entry.node.api.create(transfer(), "ann"))).toMatchObject(forbidden("key.maxCost.perDay"));
    checkInvariants(world);
  });

  // protects [Reservations] src/domain/policy/policy.ts, src/adapters/postgres/commit/commands.ts, src/application/detours/reprice.ts, src/application/detours/change-payload.ts
  it("is signed at an operator's request, even beyond the API key's limits", async () => {
    const keys = { ann: { maxCost: { perTransaction: "1" } } };
    const { entry, behind } = await silence({ keys }, { settings: { expiredReservations: "hole" } });
    await world.until(() => ops.row(behind).state === "STUCK");
    await ops.act(entry, "resolve", { txId: behind, request: { action: "PLACEHOLDER" } });
    await world.allSettled(2);
    expect(ops.outcome(behind)).toBe("CONFIRMED");
    checkInvariants(world);
  });

  // protects [Reservations] src/domain/policy/policy.ts, src/adapters/postgres/commit/commands.ts, src/application/detours/reprice.ts, src/application/detours/change-payload.ts
  it("may replace a transaction at an operator's request, even beyond the API key's limits", async () => {
    const entry = await start({}, { policies: policiesOf({ keys: { ann: { maxCost: { perDay: `${WORST}` } } } }) });
    world.holdBlocks();
    const { txId } = await world.settle(entry.node.api.create(transfer(), "ann"));
    await world.until(() => ops.row(txId).subState === "BROADCAST");
    expect(await refusal(ops.act(entry, "cancel", { txId }))).toMatchObject(forbidden("key.maxCost.perDay"));
    await ops.act(entry, "resolve", { txId, request: { action: "PLACEHOLDER" } });
    expect(ops.kinds(txId)).toEqual(["initial", "placeholder"]);
  });

  // protects [Reservations] src/domain/policy/policy.ts, src/adapters/postgres/commit/commands.ts, src/application/detours/reprice.ts, src/application/detours/change-payload.ts
  it("is repriced automatically, even beyond the API key's limits", async () => {
    const keys = { ann: { maxCost: { perDay: "1" } } };
    const { entry, behind, nonce } = await silence({ keys }, { settings: { resubmitIntervalMs: 2_000 } });
    const placed = () => world.rows().find((row) => row.nonce === nonce);
    world.holdBlocks();
    await world.until(() => (placed()?.attempts.length ?? 0) > 0);
    const txId = placed()?.txId as string;
    const fees = { maxFeePerGas: `${900n * GWEI}`, maxPriorityFeePerGas: `${900n * GWEI}` };
    expect(await refusal(ops.act(entry, "reprice", { txId, request: fees }))).toMatchObject(
      forbidden("key.maxCost.perDay"),
    );
    world.chain.setBaseFee(60n * GWEI);
    world.chain.mine();
    await world.until(() => ops.kinds(txId).length > 1);
    expect(ops.kinds(txId)).toEqual(["placeholder", "placeholder"]);
    world.chain.setBaseFee(GWEI);
    world.releaseBlocks();
    await world.allSettled(2);
    expect(ops.outcome(behind)).toBe("CONFIRMED");
  });

  // protects [Reservations] src/application/detours/another-attempt.ts, src/application/detours/holes.ts
  it("is not signed beyond the signer's policy", async () => {
    const signers = { [SIGNER]: { maxCost: { perDay: `${WORST}` } } };
    const { entry, behind, signed, nonce } = await silence({ signers });
    await world.until(() => ops.row(behind).state === "STUCK");
    expect(ops.row(behind).history.at(-1)?.reason).toMatch(
      new RegExp(`nonce ${nonce} .*expired unused.*no placeholder takes it: .*maxCost.perDay of this signer`),
    );
    expect(signed).not.toContain(nonce);
    expect(await usedByAnn(entry)).toBeUndefined();
  });
});
