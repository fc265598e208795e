import { serializeTransaction } from "viem/utils";
import { afterEach, describe, expect, it } from "vitest";
import type { ChainSettings } from "../../../src/application/settings.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { CHAIN_ID, SIGNER, SIGNERS, TO, World, type WorldNode } from "../../support/world.ts";

const GWEI = 1_000_000_000n;
const signer = new FakeSigner(SIGNERS);

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function start(settings: Partial<ChainSettings> = {}): Promise<WorldNode> {
  world = new World({ settings });
  ops = new OperatedWorld(world);
  const node = await world.startNode();
  world.holdBlocks();
  return node;
}

async function plain(maxFeePerGas: bigint, maxPriorityFeePerGas: bigint, gas = 21_000n): Promise<Hex> {
  const fees = { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas } as const;
  const unsigned = { chainId: CHAIN_ID, nonce: 0, to: TO, data: "0x", value: 7n, gas, fees, accessList: [] };
  const [made] = await signer.sign(SIGNER, [{ ...unsigned, data: "0x" }]);
  return made?.rawTransaction as Hex;
}

/** A blob transaction as `FakeSigner` would sign it if it supported blobs. */
function blob(maxFeePerGas: bigint, maxPriorityFeePerGas: bigint, maxFeePerBlobGas: bigint): Hex {
  const fees = { maxFeePerGas, maxPriorityFeePerGas, maxFeePerBlobGas };
  const said = { type: "eip4844", chainId: CHAIN_ID, nonce: 0, to: TO, value: 0n, gas: 21_000n, ...fees } as const;
  const signature = {
    r: `0x${SIGNER.slice(2).padStart(64, "0")}`,
    s: `0x${"1".padStart(64, "0")}`,
    yParity: 0,
  } as const;
  return serializeTransaction({ ...said, blobVersionedHashes: [`0x01${"00".repeat(31)}`] }, signature);
}

async function handedIn({ node }: WorldNode, rawTransaction: Hex): Promise<string> {
  const { reservation } = await world.settle(node.api.reserveNonce({ signer: SIGNER }));
  const { txId } = await world.settle(node.api.submitReserved(reservation.reservationId, { rawTransaction }));
  return txId;
}

const replace = (node: WorldNode, txId: string, rawTransaction: Hex) =>
  ops.act(node, "resolve", { txId, request: { action: "REPLACE", rawTransaction } });

const TOO_LITTLE = { code: "INVALID_REQUEST", extras: { path: "rawTransaction" } };

describe("an externally signed replacement", () => {
  // protects [Holes] src/application/detours/change-payload.ts
  it("must not exceed the gas cap of one transaction, nor fall below the minimum gas", async () => {
    const node = await start({ maxTransactionGas: 100_000n });
    const txId = await ops.sent(node);
    const offered = (gas: bigint) => plain(30n * GWEI, 2n * GWEI, gas).then((raw) => replace(node, txId, raw));
    const refused = (reason: string) => ({ code: "SUBMISSION_REJECTED", extras: { reason } });
    await expect(offered(100_001n)).rejects.toMatchObject(refused("GAS_OVER_BLOCK"));
    await expect(offered(20_999n)).rejects.toMatchObject(refused("GAS_TOO_LOW"));
    await offered(100_000n);
    expect(ops.kinds(txId)).toEqual(["initial", "replace"]);
  });

  it("must raise both fee fields by at least 10 %", async () => {
    const node = await start();
    const txId = await ops.sent(node);
    const offers: readonly (readonly [bigint, bigint])[] = [
      [20n * GWEI, GWEI],
      [22n * GWEI - 1n, 2n * GWEI],
      [30n * GWEI, (11n * GWEI) / 10n - 1n],
    ];
    for (const offer of offers) {
      await expect(replace(node, txId, await plain(...offer))).rejects.toMatchObject(TOO_LITTLE);
    }
    expect(ops.kinds(txId)).toEqual(["initial"]);
    await replace(node, txId, await plain(22n * GWEI, (11n * GWEI) / 10n));
    expect(ops.kinds(txId)).toEqual(["initial", "replace"]);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED/REPLACED");
    checkInvariants(world);
  });

  // protects [Sent again, priced again, stuck] src/application/detours/change-payload.ts
  it("must outbid the newest attempt, not only the first", async () => {
    const node = await start();
    const txId = await ops.sent(node);
    await ops.act(node, "reprice", {
      txId,
      request: { maxFeePerGas: "40000000000", maxPriorityFeePerGas: "4000000000" },
    });
    await world.until(() => ops.row(txId).acceptedOrdinal === 2);
    await expect(replace(node, txId, await plain(30n * GWEI, 3n * GWEI))).rejects.toMatchObject(TOO_LITTLE);
    await replace(node, txId, await plain(44n * GWEI, (44n * GWEI) / 10n));
    expect(ops.kinds(txId)).toEqual(["initial", "reprice", "replace"]);
  });

  // protects [Sent again, priced again, stuck] src/domain/fees/repricing.ts
  it("must double all three fee fields if it has blobs", async () => {
    const node = await start();
    const txId = await handedIn(node, blob(20n * GWEI, GWEI, 5n));
    const offers: readonly (readonly [bigint, bigint, bigint])[] = [
      [40n * GWEI, 2n * GWEI, 9n],
      [40n * GWEI - 1n, 2n * GWEI, 10n],
      [40n * GWEI, 2n * GWEI - 1n, 10n],
    ];
    for (const offer of offers) {
      await expect(replace(node, txId, blob(...offer))).rejects.toMatchObject(TOO_LITTLE);
    }
    await expect(replace(node, txId, await plain(900n * GWEI, 900n * GWEI))).rejects.toMatchObject(TOO_LITTLE);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    await replace(node, txId, blob(40n * GWEI, 2n * GWEI, 10n));
    expect(ops.kinds(txId)).toEqual(["initial", "replace"]);
  });
});

it("a reprice of a blob transaction is refused with CONFLICT, because only its caller can sign it", async () => {
  const node = await start();
  const txId = await handedIn(node, blob(20n * GWEI, GWEI, 5n));
  await expect(ops.act(node, "reprice", { txId })).rejects.toMatchObject({ code: "CONFLICT" });
  expect(ops.kinds(txId)).toEqual(["initial"]);
});
