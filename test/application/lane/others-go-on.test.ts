/**
 * Lanes that are processed together: if the node loses one lane, or the database reports an error about one lane, only
 * that lane is affected.
 */
import { expect, it } from "vitest";
import { trustedLanes } from "../../../src/application/chain/trust.ts";
import { reconcile } from "../../../src/application/detours/reconcile.ts";
import { happened } from "../../../src/application/lane/tracked.ts";
import { receiptsOfBlocks } from "../../../src/application/stages/5-receipt/receipt.ts";
import { chainJudged, chainLookOwed } from "../../../src/domain/pace/lane-pace.ts";
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

// protects [The fence] src/application/lane/activity.ts, src/application/lane/term.ts
it("a check of the chain's identity succeeds for the other lanes if the node has lost one lane", async () => {
  const { ports, context, ending, other } = await bench();
  for (const lane of [ending, other]) happened(lane, chainLookOwed);
  ending.stop("lost");
  expect(await trustedLanes(ports, context, [ending, other])).toEqual([other]);
});

// protects [Keys of the node, other chains, comparison] src/application/chain/trust.ts
it("a check of the chain's identity succeeds for the other lanes if the database read for one lane fails", async () => {
  const { ports, context, telemetry, ending: failing, other } = await bench();
  for (const lane of [failing, other]) happened(lane, chainLookOwed);
  let looks = 0;
  const settledBelow = async () => {
    if (++looks === 1) throw new Error("the connection was reset");
    return 0;
  };
  const store = { ...ports.store, settledBelow };
  expect(await trustedLanes({ ...ports, store }, context, [failing, other])).toEqual([other]);
  expect(telemetry.of("alert").map(({ code, message }) => `${code} ${message}`)).toEqual([
    "PASS_FAILED whether chain 31337 is still the one that was known could not be judged for 1 of 2 lanes: Error: the connection was reset",
  ]);
  // The lane whose check failed still has to be compared with the chain; the next pass does so.
  expect(failing.pace.lookOwed).toBe(true);
  expect(await trustedLanes({ ...ports, store }, context, [failing, other])).toEqual([failing, other]);
});

// protects [Keys of the node, other chains, comparison] src/application/chain/trust.ts
it("a comparison with the chain's low count returns `distrusted` if the database read fails", async () => {
  const { ports, context, telemetry, ending: failing } = await bench();
  happened(failing, chainJudged, null, 0);
  const settledBelow = () => Promise.reject(new Error("the connection was reset"));
  await reconcile({ ...ports, store: { ...ports.store, settledBelow } }, context, [failing]);
  expect(telemetry.of("lane.reconciled")).toMatchObject([{ result: "distrusted" }]);
  expect(failing.pace.lookOwed).toBe(true);
});

// protects [Keys of the node, other chains, comparison] src/application/chain/trust.ts
it("a check of the chain's identity succeeds for the other lanes if one lane cannot store the genesis hash", async () => {
  const { ports, context, control, ending: failing, other } = await bench();
  context.genesisHash = null;
  for (const lane of [failing, other]) happened(lane, chainLookOwed);
  control.answer = () => new Error("the connection was reset");
  expect(await trustedLanes(ports, context, [failing, other])).toEqual([other]);
});

// protects [The fence] src/application/lane/activity.ts, src/application/lane/term.ts
it("a comparison of lanes with the chain covers the other lanes if the node has lost one lane", async () => {
  const { ports, context, telemetry, ending, other } = await bench();
  ending.stop("lost");
  await reconcile(ports, context, [ending, other]);
  expect(telemetry.of("lane.reconciled")).toEqual([{ type: "lane.reconciled", lane: other.lane, result: "agreed" }]);
});

// protects [The fence] src/application/lane/activity.ts, src/application/lane/term.ts
it("receipts of a block reach the other lanes even if the node loses one lane meanwhile", async () => {
  const { ports, context, control, writes, chain, simulated, ending, other } = await bench();
  const block = { ...simulated.blocks.byNumber(2), transactionHashes: [hashNumber(1), hashNumber(2)] } as Block;
  Object.assign(chain, { receiptsInBlock: async () => [receiptOf(1, block), receiptOf(2, block)] });
  control.meanwhile = () => ending.stop("lost");
  expect(await receiptsOfBlocks(ports, context, [block])).toEqual([]);
  expect(eventsOf(writes)).toEqual(["mine tx 1", "mine tx 2"]);
  expect(other.mined.size).toBe(1);
});
