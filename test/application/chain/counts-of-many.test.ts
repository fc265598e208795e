/** How often the chain is asked for counts on behalf of fifty lanes that all wait for a block. */
import { afterEach, expect, it } from "vitest";
import type { Address } from "../../../src/domain/lane.ts";
import { transfer, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const LANES = 50;
const SIGNERS = Array.from({ length: LANES }, (_, n) => `0x${(n + 1).toString(16).padStart(40, "c")}` as Address);

// protects [Keys of the node, other chains, comparison] src/application/chain/counts.ts, src/adapters/evm/reads/read-sent.ts
it("fifty lanes whose heads stand still for five minutes ask once for all that looks at a count in the same poll", async () => {
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
  // Four polls of an unchanged head, for external use and for a better price; one mined and one pending count for the
  // comparison with the chain. If each reader asked by itself, there would be eleven requests.
  expect(asked).toEqual({ one: 6 * LANES, everywhere: 4 * LANES });
});
