/** How many transaction counts are requested from the chain for fifty lanes that all wait for a block. */
import { afterEach, expect, it } from "vitest";
import type { Address } from "../../../src/domain/lane.ts";
import { transfer, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const LANES = 50;
const SIGNERS = Array.from({ length: LANES }, (_, n) => `0x${(n + 1).toString(16).padStart(40, "c")}` as Address);

// protects [Keys of the node, other chains, comparison] src/application/chain/counts.ts, src/adapters/evm/reads/read-sent.ts
it("fifty lanes on a chain without a new block for five minutes read each signer's transaction count only once per poll", async () => {
  world = new World({ signers: SIGNERS });
  const { node, rpc } = await world.startNode();
  world.holdBlocks();
  await world.settle(Promise.all(SIGNERS.map((signer) => node.api.create(transfer({ signer })))));
  const asked = { one: 0, everywhere: 0 };
  const [one, everywhere] = [rpc.transactionCount.bind(rpc), rpc.transactionCountEverywhere.bind(rpc)];
  rpc.transactionCount = (...question) => {
    asked.one++;
    return one(...question);
  };
  rpc.transactionCountEverywhere = (...question) => {
    asked.everywhere++;
    return everywhere(...question);
  };
  await world.clock.advance(300_000);
  // Requests per lane: four polls while there is no new block, plus one mined and one pending count for reconciliation.
  // The check for external use and repricing share the four polls. If each reader sent its own requests, there would be
  // eleven.
  expect(asked).toEqual({ one: 6 * LANES, everywhere: 4 * LANES });
});
