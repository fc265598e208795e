import { serializeTransaction } from "viem/utils";
import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import { feeCap } from "../../../src/domain/transaction/fees.ts";
import type { StuckDecision } from "../../../src/ports/stuck-hook.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { Faults, type FeeLie } from "../../doubles/simulated-chain/faults.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
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
/** The fee ceiling that docs/configuration.md gives for chain 31337. */
const MOST = 1_000n * GWEI;
/** An absurd price: 0.004 ether per unit of gas. */
const FORTUNE = 4_000_000n * GWEI;
const OVER = { maxFeePerGas: String(MOST + 1n), maxPriorityFeePerGas: String(GWEI) };
const BARE = { to: TO, value: "1" };

const LIES: readonly (readonly [string, FeeLie])[] = [
  ["a base fee of zero", { baseFee: 0n, price: FORTUNE }],
  ["no base fee", { baseFee: null, price: FORTUNE }],
  ["a fortune for a base fee", { baseFee: FORTUNE, price: FORTUNE }],
];

async function start(options: WorldOptions = {}, node: Parameters<World["startNode"]>[0] = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  return world.startNode(node);
}

/** Starts a node whose first endpoint reports false fees from the beginning. */
async function startLying(lie: FeeLie, options: WorldOptions = {}, endpoints = 1): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  const second = { elsewhere: { chain: world.chain, faults: new Faults() } };
  const node = world.addNode(endpoints === 2 ? second : {});
  node.faults.lieAboutFees(lie);
  await world.settle(node.node.start());
  return node;
}

const priced = (fees: object, more: object = {}) => transfer({ payload: { ...BARE, gas: "21000", ...fees, ...more } });

const refusal = (promise: Promise<unknown>) => world.refusal(promise);

function overCeiling(variable = "FENCEPOST_MAX_FEE_GWEI") {
  const extras = expect.objectContaining({ reason: "FEE_OVER_CEILING" });
  return { code: "SUBMISSION_REJECTED", extras, message: expect.stringContaining(variable) };
}

function alerts({ events }: WorldNode): readonly string[] {
  return events.flatMap((event) =>
    event.type === "alert" && event.code === "FEE_CEILING_REACHED" ? [event.message] : [],
  );
}

/** A transaction that a caller signs itself. */
async function signed(nonce: number, fee: bigint): Promise<Hex> {
  const fees = { type: "eip1559", maxFeePerGas: fee, maxPriorityFeePerGas: GWEI } as const;
  const rest = { chainId: CHAIN_ID, nonce, to: TO, value: 5n, gas: 21_000n, accessList: [] } as const;
  const [made] = await new FakeSigner(SIGNERS).sign(SIGNER, [{ ...rest, fees, data: "0x" }]);
  return made?.rawTransaction as Hex;
}

function caps(txId: string): readonly bigint[] {
  return ops.row(txId).attempts.map(({ fees }) => feeCap(fees));
}

describe("a fee market with extreme prices", () => {
  it.each(LIES)("leads to no fee above the ceiling (%s)", async (_, lie) => {
    const node = await startLying(lie, {}, 1);
    const txId = await ops.create(node, { payload: BARE });
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    expect(caps(txId)).toEqual([MOST]);
    expect(alerts(node)).toEqual([
      expect.stringMatching(/nonce 0 .*1000000000000 wei per gas \(FENCEPOST_MAX_FEE_GWEI\)/),
    ]);
    checkInvariants(world);
  });

  it.each(LIES)("changes no fee if another endpoint shows the usual market (%s)", async (_, lie) => {
    const node = await startLying(lie, {}, 2);
    const txId = await ops.create(node, { payload: BARE });
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    expect(caps(txId)).toEqual([3n * GWEI]);
    expect(alerts(node)).toEqual([]);
    checkInvariants(world);
  });

  it("is explained together with the setting that limits the fee", async () => {
    const node = await startLying({ baseFee: 0n, price: FORTUNE });
    world.holdBlocks();
    const txId = await ops.sent(node, { payload: BARE });
    const { causes, help } = await world.settle(node.node.api.explain(txId));
    expect(causes).toEqual([
      expect.objectContaining({
        code: "FEE_CEILING_REACHED",
        text: expect.stringContaining("1000 gwei (FENCEPOST_MAX_FEE_GWEI)"),
        data: { ceiling: String(MOST), variable: "FENCEPOST_MAX_FEE_GWEI" },
      }),
    ]);
    expect(help.map(({ code }) => code)).toContain("RAISE_CEILING");
  });

  it("does not make automatic repricing exceed the ceiling", async () => {
    const node = await start({ settings: { resubmitIntervalMs: 1_000 } });
    world.holdBlocks();
    const txId = await ops.sent(node, { payload: { ...BARE, gas: "21000", gasPrice: String(400n * GWEI) } });
    node.faults.lieAboutFees({ baseFee: null, price: FORTUNE });
    await world.until(() => caps(txId).length === 2);
    await world.clock.advance(60_000);
    expect(caps(txId)).toEqual([400n * GWEI, MOST]);
    expect(alerts(node)).toHaveLength(1);
  });

  // protects [Sent again, priced again, stuck] src/application/detours/another-attempt.ts, src/application/stages/3-sign/sign.ts
  it("does not make a placeholder pay more than the ceiling", async () => {
    const options = { settings: { holePolicy: "heal" }, nodeSigners: [SIGNERS[2] as `0x${string}`] } as const;
    const node = await startLying({ baseFee: 0n, price: FORTUNE }, options);
    const { reservation } = await world.settle(node.node.api.reserveNonce({ signer: SIGNER, ttl: "1s" }));
    expect(reservation.nonce).toBe(0);
    await ops.create(node, { payload: BARE });
    await ops.create(node, { payload: BARE, signer: SIGNERS[2] });
    await world.allSettled(3);
    const attempts = world.rows().flatMap((row) => row.attempts);
    expect(attempts.map(({ kind }) => kind).toSorted()).toEqual(["initial", "initial", "placeholder"]);
    for (const { fees } of attempts) expect(feeCap(fees)).toBe(MOST);
    const subjects = alerts(node).map((message) => message.slice(0, message.indexOf(":")));
    expect(subjects.toSorted()).toEqual(
      [`nonce 0 of ${SIGNER}`, `nonce 0 of ${SIGNERS[2]}`, `nonce 1 of ${SIGNER}`].toSorted(),
    );
  });
});

describe("the ceiling on gas cost", () => {
  const GUZZLER = `0x${"cc".repeat(20)}` as const;

  // protects [Sent again, priced again, stuck] src/application/stages/1-create/prepare.ts
  it("refuses a create if the highest permitted fee is below the base fee", async () => {
    // With 21,000 gas, the cost ceiling allows 100 gwei per gas, which equals the base fee. With 22,000 gas, it allows
    // a little less.
    const dear = { baseFee: 100n * GWEI, price: GWEI };
    const node = await startLying(dear, { settings: { maxGasCostWei: 21_000n * 100n * GWEI } });
    world.holdBlocks();
    const txId = await ops.sent(node, { payload: BARE });
    expect(caps(txId)).toEqual([100n * GWEI]);
    expect(alerts(node)).toEqual([expect.stringContaining("FENCEPOST_MAX_GAS_COST_WEI")]);
    const more = node.node.api.create(transfer({ payload: { ...BARE, gas: "22000" } }));
    expect(await refusal(more)).toMatchObject(overCeiling("FENCEPOST_MAX_GAS_COST_WEI"));
    expect(world.rows()).toHaveLength(1);
  });

  // protects [Sent again, priced again, stuck] src/domain/fees/ceilings.ts
  it("limits the fee if an endpoint estimates the gas of a whole block", async () => {
    const node = await startLying({ baseFee: null, price: FORTUNE });
    node.rpc.simulate = async () => ({ outcome: "ok", gas: 30_000_000n, balance: 10n ** 20n });
    const txId = await ops.create(node, { payload: { to: GUZZLER, data: "0x01" } });
    await world.until(() => ops.row(txId).attempts.length > 0);
    const [attempt] = ops.row(txId).attempts;
    expect((attempt?.gas ?? 0n) * (caps(txId)[0] ?? 0n)).toBeLessThanOrEqual(10n ** 18n);
    expect(alerts(node)).toEqual([expect.stringContaining("FENCEPOST_MAX_GAS_COST_WEI")]);
  });
});

describe("a caller's own fees", () => {
  // protects [Sent again, priced again, stuck] src/application/stages/1-create/prepare.ts
  it("are refused above the ceiling", async () => {
    const node = await start();
    expect(await refusal(node.node.api.create(priced(OVER)))).toMatchObject(overCeiling());
    const legacy = priced({ gasPrice: String(MOST + 1n) });
    const tip = priced({ maxPriorityFeePerGas: String(MOST + 1n) });
    const results = await world.settle(node.node.api.createBatch([legacy, transfer(), tip, priced(OVER)]));
    expect(results).toMatchObject([overCeiling(), { nonce: 0 }, overCeiling(), overCeiling()]);
    await world.allSettled(1);
  });

  it("are refused if gas times fee exceeds the ceiling on gas cost", async () => {
    const node = await start();
    const at = { maxFeePerGas: String(MOST), maxPriorityFeePerGas: String(GWEI) };
    const txId = await ops.create(node, { payload: { ...BARE, gas: "21000", ...at } });
    const much = node.node.api.create(priced(at, { gas: "1000001" }));
    expect(await refusal(much)).toMatchObject(overCeiling("FENCEPOST_MAX_GAS_COST_WEI"));
    await ops.settled(txId);
    expect(caps(txId)).toEqual([MOST]);
    expect(alerts(node)).toEqual([]);
  });

  it("are refused if estimated gas times fee exceeds the ceiling on gas cost", async () => {
    const node = await start({ settings: { maxGasCostWei: 21_000n * 10n * GWEI } });
    node.rpc.simulate = async () => ({ outcome: "ok", gas: 21_100n, balance: 10n ** 20n });
    const fees = { maxFeePerGas: String(10n * GWEI), maxPriorityFeePerGas: String(GWEI) };
    const made = node.node.api.create(transfer({ payload: { ...BARE, data: "0x", ...fees } }));
    expect(await refusal(made)).toMatchObject(overCeiling("FENCEPOST_MAX_GAS_COST_WEI"));
  });

  // protects [Sent again, priced again, stuck] src/application/stages/1-create/prepare.ts
  it("end an intake row as FAILED_FINAL if they are above the ceiling", async () => {
    const node = await start();
    const ports = { codec: createCodec(), entropy: createSeededEntropy(9), chainIds: [CHAIN_ID] };
    const [dear, fine] = [normalise(ports, priced(OVER)), normalise(ports, transfer())];
    world.database.insertIntake(dear);
    world.database.insertIntake(fine);
    await world.allSettled(2);
    expect(ops.row(dear.txId)).toMatchObject({ state: "FAILED_FINAL", subState: "REJECTED", nonce: null });
    expect(ops.row(fine.txId)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    const { causes } = await world.settle(node.node.api.explain(dear.txId));
    expect(causes).toEqual([expect.objectContaining({ text: expect.stringContaining("FENCEPOST_MAX_FEE_GWEI") })]);
  });

  it("are refused if fees and value together exceed the ceiling on total cost", async () => {
    const node = await start({ settings: { maxCostWei: 10n ** 18n } });
    const value = { value: String(10n ** 18n) };
    for (const request of [priced({ gasPrice: String(GWEI) }, value), transfer({ payload: { ...BARE, ...value } })]) {
      expect(await refusal(node.node.api.create(request))).toMatchObject(overCeiling("FENCEPOST_MAX_COST_WEI"));
    }
    const txId = await ops.create(node, { payload: { ...BARE, value: String(10n ** 18n - 21_000n * 50n * GWEI) } });
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });

  it("may come with any value if no ceiling on total cost is configured", async () => {
    const node = await start();
    const txId = await ops.create(node, { payload: { ...BARE, value: String(9_000n * 10n ** 18n) } });
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });
});

describe("a fee above the ceiling from an operator or a hook", () => {
  const dearer = { action: "REPLACE", reason: "r" } as const;

  it.each([
    ["reprice", OVER],
    ["cancel", OVER],
    ["replace", { payload: { ...BARE, gas: "21000", ...OVER } }],
    ["resolve", { action: "REPLACE", fees: OVER }],
    ["resolve", { action: "CANCEL", fees: OVER }],
    ["resolve", { action: "PLACEHOLDER", fees: OVER }],
    // protects [Sent again, priced again, stuck] src/application/detours/change-payload.ts
  ] as const)("is refused (%s %j)", async (action, request) => {
    const node = await start({ settings: { inFlightWindow: 1 } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    const waiting = await ops.create(node);
    await expect(ops.act(node, action, { txId, request })).rejects.toMatchObject(overCeiling());
    const isReprice = action === "reprice" || ("action" in request && request.action === "REPLACE");
    await expect(ops.act(node, action, { txId: waiting, request })).rejects.toMatchObject(
      isReprice ? { code: "CONFLICT" } : overCeiling(),
    );
    expect([ops.kinds(txId), ops.kinds(waiting)]).toEqual([["initial"], []]);
    expect(ops.row(txId).subState).toBe("BROADCAST");
  });

  // protects [Sent again, priced again, stuck] src/application/detours/change-payload.ts
  it("is refused in an externally signed transaction", async () => {
    const node = await start();
    world.holdBlocks();
    const txId = await ops.sent(node);
    const replace = (rawTransaction: Hex) =>
      ops.act(node, "resolve", { txId, request: { action: "REPLACE", rawTransaction } });
    await expect(replace(await signed(0, MOST + 1n))).rejects.toMatchObject(overCeiling());
    const blobs = { maxFeePerBlobGas: 10n ** 13n, blobVersionedHashes: [`0x01${"00".repeat(31)}`] as const };
    await expect(replace(blob(blobs))).rejects.toMatchObject(overCeiling("FENCEPOST_MAX_GAS_COST_WEI"));
    expect(ops.kinds(txId)).toEqual(["initial"]);
  });

  it.each<[string, () => Promise<StuckDecision>]>([
    ["fees", async () => ({ ...dearer, fees: OVER })],
    ["bytes", async () => ({ ...dearer, rawTransaction: await signed(0, MOST + 1n) })],
    // protects [Sent again, priced again, stuck] src/application/detours/change-payload.ts
  ])("is refused if a hook returns it as %s", async (_, decide) => {
    const node = await start({ settings: { alertHeadAgeMs: 1_000 } }, { stuckHook: { decide } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    const failed = () => node.events.find((event) => event.type === "alert" && event.code === "STUCK_HOOK_FAILED");
    await world.until(() => failed() !== undefined, 300_000);
    expect(failed()).toMatchObject({ message: expect.stringContaining("FENCEPOST_MAX_FEE_GWEI") });
    expect(ops.kinds(txId)).toEqual(["initial"]);
  });

  it("is refused even to outbid an attempt at the ceiling", async () => {
    const node = await start();
    world.holdBlocks();
    const at = { gas: "21000", maxFeePerGas: String(MOST), maxPriorityFeePerGas: String(GWEI) };
    const txId = await ops.sent(node, { payload: { ...BARE, ...at } });
    for (const action of ["reprice", "cancel"] as const) {
      await expect(ops.act(node, action, { txId })).rejects.toMatchObject(overCeiling());
    }
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });
});

describe("a caller's own transaction for a reserved nonce", () => {
  // protects [Sent again, priced again, stuck] src/application/operations/reservations.ts
  it("is refused if the fee is above the ceiling", async () => {
    const node = await start();
    const { reservation } = await world.settle(node.node.api.reserveNonce({ signer: SIGNER }));
    const { reservationId, nonce } = reservation;
    const hand = async (rawTransaction: Hex) => node.node.api.submitReserved(reservationId, { rawTransaction });
    expect(await refusal(hand(await signed(nonce, MOST + 1n)))).toMatchObject(overCeiling());
    const blobs = { maxFeePerBlobGas: 10n ** 13n, blobVersionedHashes: [`0x01${"00".repeat(31)}`] as const };
    expect(await refusal(hand(blob(blobs)))).toMatchObject(overCeiling("FENCEPOST_MAX_GAS_COST_WEI"));
    const { txId } = await world.settle(hand(await signed(nonce, MOST)));
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });

  // protects [Sent again, priced again, stuck] src/application/operations/reservations.ts
  it("is accepted at any fee if the caller has already sent it", async () => {
    const node = await start();
    const { reservation } = await world.settle(node.node.api.reserveNonce({ signer: SIGNER }));
    const submission = world.chain.submit(await signed(reservation.nonce, 2n * MOST));
    const txHash = submission.accepted ? submission.hash : null;
    const { txId } = await world.settle(node.node.api.markUsed(reservation.reservationId, { txHash }));
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });
});

describe("a lowered fee or cost ceiling", () => {
  async function lowered(settings: WorldOptions["settings"] & object): Promise<WorldNode> {
    await world.settle((world.nodes.at(-1) as WorldNode).node.close());
    return world.startNode({ settings });
  }

  // protects [Sent again, priced again, stuck] src/application/stages/3-sign/sign.ts, src/application/detours/reprice.ts
  it("does not stop transactions that were signed before", async () => {
    const before = await start({ settings: { resubmitIntervalMs: 1_000 } });
    world.chain.setBaseFee(50n * GWEI);
    const txId = await ops.sent(before);
    const node = await lowered({ maxFeeWei: 15n * GWEI, resubmitIntervalMs: 1_000 });
    const { submitAttempts } = ops.row(txId);
    await world.until(() => ops.row(txId).submitAttempts > submitAttempts + 2);
    expect(caps(txId)).toEqual([20n * GWEI]);
    expect(alerts(node)).toEqual([expect.stringContaining("15000000000 wei per gas (FENCEPOST_MAX_FEE_GWEI)")]);
    const { causes } = await world.settle(node.node.api.explain(txId));
    expect(causes.map(({ code }) => code)).toEqual(["FEE_CEILING_REACHED", "FEE_BELOW_BASE_FEE"]);
    world.chain.setBaseFee(GWEI);
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });

  // protects [Sent again, priced again, stuck] src/application/stages/3-sign/sign.ts, src/application/detours/reprice.ts
  it("limits the fee of a transaction that is not signed yet", async () => {
    const before = await start();
    await ops.lane(before, "suspend");
    const txId = await ops.create(before);
    const node = await lowered({ maxFeeWei: 15n * GWEI });
    await ops.lane(node, "resume");
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    expect(caps(txId)).toEqual([15n * GWEI]);
    expect(alerts(node)).toHaveLength(1);
  });

  // protects [Sent again, priced again, stuck] src/application/stages/3-sign/sign.ts, src/application/detours/reprice.ts
  it("rejects an unsigned transaction that exceeds the new ceiling", async () => {
    const before = await start();
    await ops.lane(before, "suspend");
    const dear = await ops.create(before, {
      payload: { ...BARE, value: "1000000", gas: "21000", gasPrice: "2000000000" },
    });
    const fine = await ops.create(before);
    const node = await lowered({ maxCostWei: 999_999n });
    await ops.lane(node, "resume");
    await world.until(() => ops.row(dear).state === "FAILED_FINAL");
    expect(ops.row(dear)).toMatchObject({ subState: "REJECTED", nonce: null });
    expect(ops.row(dear).lastError).toContain("FENCEPOST_MAX_COST_WEI");
    await world.until(() => ops.row(fine).nonce === 0);
  });
});

/** A blob transaction as `FakeSigner` would sign it if it supported blobs. */
function blob(blobs: {
  readonly maxFeePerBlobGas: bigint;
  readonly blobVersionedHashes: readonly `0x${string}`[];
}): Hex {
  const fees = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
  const said = { type: "eip4844", chainId: CHAIN_ID, nonce: 0, to: TO, value: 0n, gas: 21_000n, ...fees } as const;
  const signature = { r: `0x${SIGNER.slice(2).padStart(64, "0")}`, s: `0x${"1".padStart(64, "0")}` } as const;
  return serializeTransaction({ ...said, ...blobs }, { ...signature, yParity: 0 });
}
