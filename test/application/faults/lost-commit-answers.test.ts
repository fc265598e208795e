/**
 * A commit was carried out but its response was lost. The owner updates its memory of a lane only from responses to
 * commits. So its memory lacks this commit until the lane is reloaded.
 */
import { afterEach, describe, expect, it } from "vitest";
import { type LaneWrite, OutcomeUnknown } from "../../../src/ports/lane-store.ts";
import { checkRemembered } from "../../support/remembered.ts";
import { SIGNER, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const create = ({ node }: WorldNode) => world.settle(node.api.create(transfer()));

/** Carries out the first commit that contains a write of this kind, and loses its response. */
function loseAnswerTo({ store }: WorldNode, kind: LaneWrite["kind"]) {
  const commit = store.commit.bind(store);
  const lost = { isLost: false };
  store.commit = async (writes) => {
    const committed = await commit(writes);
    if (lost.isLost || !writes.some((write) => write.kind === kind)) return committed;
    lost.isLost = true;
    throw new OutcomeUnknown("the connection died at COMMIT");
  };
  return lost;
}

interface Scene {
  /** Triggers the event that makes the lane perform this write. */
  readonly happen: (entry: WorldNode) => Promise<unknown>;
  /** The nonce that the next create gets if the owner has found out that the commit was carried out. */
  readonly next: number;
}

const SCENES: Readonly<Partial<Record<LaneWrite["kind"], Scene>>> = {
  align: { happen: async () => world.chain.mineForeign(SIGNER, 3), next: 4 },
  reconcile: { happen: async () => world.database.changeHistory(), next: 1 },
  expire: { happen: ({ node }) => world.settle(node.api.reserveNonce({ signer: SIGNER, ttl: 5 })), next: 2 },
  closeHoles: {
    async happen(entry) {
      await world.settle(entry.node.api.reserveNonce({ signer: SIGNER, ttl: 5 }));
      await create(entry);
      world.chain.mineForeign(SIGNER);
      await world.allSettled(2);
      world.chain.mine(70);
    },
    next: 3,
  },
};

describe("a commit that succeeded but whose response was lost", () => {
  // protects [Reads] src/application/lane/term.ts
  it.each(Object.entries(SCENES))("is included in the reloaded lane (write %s)", async (kind, scene) => {
    world = new World({ signers: [SIGNER], settings: { reconciliationIntervalMs: 10_000, holePolicy: "heal" } });
    const entry = await world.startNode();
    await create(entry);
    await world.allSettled(1);
    const lost = loseAnswerTo(entry, kind as LaneWrite["kind"]);
    const resumed = () => entry.events.filter(({ type }) => type === "lane.resumed").length;
    await scene.happen(entry);
    await world.until(() => lost.isLost, 120_000);
    const before = resumed();
    await world.until(() => resumed() > before, 30_000);
    checkRemembered(world);
    const { txId, nonce } = await create(entry);
    expect(nonce).toBe(scene.next);
    await world.until(() => world.rows().find((row) => row.txId === txId)?.state === "CONFIRMED", 60_000);
  });
});
