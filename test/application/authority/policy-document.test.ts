import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { policiesOf } from "../../support/policies.ts";
import { CHAIN_ID, SIGNER, transfer, World, type WorldNode } from "../../support/world.ts";

const codec = createCodec();
let world: World;
afterEach(() => world.close());

/** Starts a node whose policy file sets no limits. */
async function start(): Promise<WorldNode> {
  world = new World({ policies: policiesOf({}) });
  return world.startNode();
}

function forbidden(rule: string) {
  return { code: "FORBIDDEN", status: 403, extras: { rule } };
}

describe("the policy document", () => {
  const apply = (entry: WorldNode, policies: object, expectedVersion?: number) => {
    const request = { policies, reason: "a test", ...(expectedVersion !== undefined && { expectedVersion }) };
    return entry.node.api.applyPolicies(request, "operator:alice");
  };
  const alerts = ({ events }: WorldNode, code: string) =>
    events.filter((event) => (event.type === "alert" || event.type === "alert.resolved") && event.code === code);
  const none = { signers: { [SIGNER]: { maxValue: { perTransaction: "0" } } } };

  // protects [Attacks] src/application/operations/policies.ts, src/adapters/postgres/commit/commit.ts
  it("is stored by the first node that has a policy file", async () => {
    world = new World({ signers: [SIGNER] });
    const bare = await world.startNode();
    expect(await world.settle(bare.node.api.policies())).toMatchObject({ version: 0, policies: null });
    await world.startNode({ policies: policiesOf(none) });
    const inForce = await world.settle(bare.node.api.policies());
    expect(inForce).toMatchObject({ version: 1, policies: none, changedBy: "node:node-2" });
    expect(await world.refusal(bare.node.api.create(transfer()))).toMatchObject(
      forbidden("signer.maxValue.perTransaction"),
    );
  });

  it("can be changed for all nodes without a restart", async () => {
    const entry = await start();
    const other = await world.startNode();
    expect((await world.settle(other.node.api.create(transfer()))).nonce).toBe(0);
    expect(await world.settle(apply(entry, none, 1))).toMatchObject({ version: 2, changedBy: "operator:alice" });
    for (const { node } of [entry, other]) {
      expect(await world.refusal(node.api.create(transfer()))).toMatchObject(
        forbidden("signer.maxValue.perTransaction"),
      );
    }
    expect(await world.refusal(apply(other, {}, 1))).toMatchObject({ code: "CONFLICT" });
    expect(await world.refusal(apply(other, { signers: { you: {} } }))).toMatchObject({ code: "INVALID_REQUEST" });
    expect(await world.refusal(apply(other, { keys: { "\0": {} } }))).toMatchObject({ code: "INVALID_REQUEST" });
    expect(await world.settle(apply(other, {}, 2))).toMatchObject({ version: 3 });
    expect((await world.settle(entry.node.api.create(transfer()))).nonce).toBe(1);
    expect(alerts(entry, "POLICIES_CHANGED")).toHaveLength(2);
    await world.allSettled(2);
    checkInvariants(world);
  });

  // protects [Attacks] src/application/loops/node-core.ts
  it("takes precedence over a node's differing policy file", async () => {
    const entry = await start();
    const other = await world.startNode({ policies: policiesOf(none) });
    expect(alerts(entry, "POLICY_FILE_DIFFERS")).toEqual([]);
    expect(alerts(other, "POLICY_FILE_DIFFERS")).toMatchObject([{ type: "alert", severity: "WARNING" }]);
    expect((await world.settle(other.node.api.create(transfer()))).nonce).toBe(0);
    await world.settle(apply(other, none));
    expect(alerts(other, "POLICY_FILE_DIFFERS")).toMatchObject([{ type: "alert" }, { type: "alert.resolved" }]);
  });

  it("stops nonce allocation if its format is unreadable", async () => {
    const entry = await start();
    await world.settle(entry.node.api.create(transfer()));
    const ofTomorrow = { document: { moods: [] }, hash: "0x01" } as const;
    const change = { policies: ofTomorrow, actor: "operator:bob", reason: "r", nodeId: "n", expectedVersion: null };
    await world.settle(entry.store.changePolicy(change));
    const waits = normalise({ codec, entropy: createSeededEntropy(9), chainIds: [CHAIN_ID] }, transfer());
    world.database.insertIntake(waits);
    expect(await world.refusal(entry.node.api.create(transfer()))).toMatchObject({ code: "UNAVAILABLE" });
    expect(alerts(entry, "POLICY_UNREADABLE")).toMatchObject([{ type: "alert", severity: "ERROR" }]);
    await world.allSettled(1);
    await world.clock.advance(5_000);
    expect(await world.settle(entry.node.api.transaction(waits.txId))).toMatchObject({ state: "CREATED", nonce: null });
    await world.settle(apply(entry, {}));
    await world.allSettled(2);
    expect(alerts(entry, "POLICY_UNREADABLE")).toMatchObject([{ type: "alert" }, { type: "alert.resolved" }]);
    checkInvariants(world);
  });
});
