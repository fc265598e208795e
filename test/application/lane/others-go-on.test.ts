/** Lanes that are looked at together: the end of one lane's term is no matter of the others. */
import { expect, it } from "vitest";
import { trustedLanes } from "../../../src/application/chain/trust.ts";
import { reconcile } from "../../../src/application/detours/reconcile.ts";
import { happened } from "../../../src/application/lane/happened.ts";
import { receiptsOfBlocks } from "../../../src/application/stages/5-receipt/receipt.ts";
import { chainLookOwed } from "../../../src/domain/pace/lane-pace.ts";
import type { Block } from "../../../src/ports/chain.ts";
import { createOwnedLane } from "../../support/chain-bench.ts";
import { hashNumber } from "../../support/naive-chain.ts";
import { createStageBench, eventsOf, receiptOf, trackedRecord } from "../../support/stage-bench.ts";

async function bench() {
  const made = createStageBench({ cursor: 2, tracking: [trackedRecord(1)] });
  made.simulated.mine(3);
  await made.context.follower.advance();
  made.context.genesisHash = made.simulated.blocks.byNumber(0)?.hash ?? null;
  const other = createOwnedLane({ cursor: 3, tracking: [trackedRecord(2)] }, made.context, made.ports);
  const ports = { ...made.ports, store: { ...made.ports.store, loadLane: async () => null } };
  return { ...made, ports, ending: made.lane, other };
}

it("whose chain is looked at are trusted, each by itself", async () => {
  const { ports, context, ending, other } = await bench();
  for (const lane of [ending, other]) happened(lane, chainLookOwed);
  ending.stop("lost");
  expect(await trustedLanes(ports, context, [ending, other])).toEqual([other]);
});

it("that are compared with the chain are, but for the one that ended", async () => {
  const { ports, context, telemetry, ending, other } = await bench();
  ending.stop("lost");
  await reconcile(ports, context, [ending, other]);
  expect(telemetry.of("lane.reconciled")).toEqual([{ type: "lane.reconciled", lane: other.lane, result: "agreed" }]);
});

it("that have transactions in one block have their receipts", async () => {
  const { ports, context, control, writes, chain, simulated, ending, other } = await bench();
  const block = { ...simulated.blocks.byNumber(2), transactionHashes: [hashNumber(1), hashNumber(2)] } as Block;
  Object.assign(chain, { receiptsInBlock: async () => [receiptOf(1, block), receiptOf(2, block)] });
  control.meanwhile = () => ending.stop("lost");
  expect(await receiptsOfBlocks(ports, context, [block])).toEqual([]);
  expect(eventsOf(writes)).toEqual(["mine tx 1", "mine tx 2"]);
  expect(other.mined.size).toBe(1);
});
