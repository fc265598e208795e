/**
 * If the database cannot store a request, only that request is refused; the other requests of its batch are accepted.
 */
import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import type { Intent } from "../../../src/domain/transaction/transaction.ts";
import { BatchRefused } from "../../../src/ports/lane-store.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { CHAIN_ID, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const POISON = { metadata: { poison: true } };

/** Starts a node whose database cannot store one particular value, although the value passes validation. */
async function startPoisoned(): Promise<WorldNode> {
  world = new World();
  const entry = await world.startNode();
  const commit = entry.store.commit.bind(entry.store);
  entry.store.commit = async (writes) => {
    const items = writes.flatMap((write) => (write.kind === "allocate" ? write.items : []));
    if (items.some(({ intent }) => intent.metadata?.poison === true)) throw new BatchRefused("poison");
    return commit(writes);
  };
  return entry;
}

function intent(overrides: Parameters<typeof transfer>[0] = {}): Intent {
  const ports = { codec: createCodec(), entropy: createSeededEntropy(99), chainIds: [CHAIN_ID] };
  return normalise(ports, transfer(overrides));
}

describe("a create that the database cannot store", () => {
  it("is refused with INVALID_REQUEST", async () => {
    const { node } = await startPoisoned();
    const refused = {
      code: "INVALID_REQUEST",
      message: expect.stringMatching(/^the database cannot store(?!.*poison)/),
    };
    await expect(world.settle(node.api.create(transfer(POISON)))).rejects.toMatchObject(refused);
    const both = await world.settle(node.api.createBatch([transfer(POISON), transfer()]));
    expect(both).toMatchObject([refused, { outcome: "created" }]);
  });

  it("ends as FAILED_FINAL if it came through the intake table", async () => {
    await startPoisoned();
    world.database.insertIntake(intent(POISON));
    await world.until(() => world.rows()[0]?.state === "FAILED_FINAL", 10_000);
    expect(world.database.state.completions).toMatchObject([{ state: "FAILED_FINAL", settled: true }]);
  });

  it("does not set a new signer's first nonce", async () => {
    const { node } = await startPoisoned();
    await world.settle(node.api.createBatch([transfer(POISON), transfer(POISON)]));
    expect(await world.settle(node.api.create(transfer()))).toMatchObject({ nonce: 0 });
  });
});
