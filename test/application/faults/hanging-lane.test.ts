/** A lane that hangs must not affect the other lanes. */
import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import type { Intent } from "../../../src/domain/transaction/transaction.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { CHAIN_ID, SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const [SLOW, OTHER] = SIGNERS as [(typeof SIGNERS)[number], (typeof SIGNERS)[number]];
const entropy = createSeededEntropy(98);

function intent(signer: string, overrides: Parameters<typeof transfer>[0] = {}): Intent {
  return normalise({ codec: createCodec(), entropy, chainIds: [CHAIN_ID] }, transfer({ signer, ...overrides }));
}

/** Starts a node that has both lanes in memory; all of their transactions are settled. */
async function startKnown(options: ConstructorParameters<typeof World>[0] = {}): Promise<WorldNode> {
  world = new World(options);
  const entry = await world.startNode();
  for (const signer of [SLOW, OTHER]) await world.settle(entry.node.api.create(transfer({ signer })));
  await world.allSettled(2);
  return entry;
}

const count = (signer: string): number =>
  world.rows().filter(({ lane, state }) => lane.signer === signer && state === "CONFIRMED").length;

describe("a lane that hangs", () => {
  it("during a reload delays no other lane", async () => {
    const entry = await startKnown();
    entry.store.acquireLane = () => new Promise(() => undefined);
    entry.store.failNextCommit("unknown-lost");
    await world.settle(entry.node.api.create(transfer({ signer: SLOW })).catch(() => undefined));
    await world.clock.advance(1_000);
    const end = entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction", times: 2 });
    await world.settle(entry.node.api.create(transfer({ signer: OTHER })));
    await world.until(() => count(OTHER) === 2, 20_000);
    end();
    world.database.insertIntake(intent(OTHER));
    await world.until(() => count(OTHER) === 3, 20_000);
  });

  it("while its transaction count is read delays no create of another lane", async () => {
    const entry = await startKnown({ settings: { nonceStateTimeoutMs: 0 } });
    const { rpc } = entry;
    const counted = rpc.transactionCount.bind(rpc);
    rpc.transactionCount = (signer, tag) => (signer === SLOW ? new Promise(() => undefined) : counted(signer, tag));
    void entry.node.api.create(transfer({ signer: SLOW })).catch(() => undefined);
    expect(await world.settle(entry.node.api.create(transfer({ signer: OTHER })), 5_000)).toMatchObject({ nonce: 1 });
  });

  it("while its intake row is prepared delays no intake rows of other lanes", async () => {
    const entry = await startKnown();
    const { rpc } = entry;
    const simulated = rpc.simulate.bind(rpc);
    rpc.simulate = (call) => (call.from === SLOW ? new Promise(() => undefined) : simulated(call));
    world.database.insertIntake(intent(SLOW, { payload: { to: OTHER, value: 1 } }));
    await world.clock.advance(1_000);
    world.database.insertIntake(intent(OTHER));
    await world.until(() => count(OTHER) === 2, 20_000);
  });
});
