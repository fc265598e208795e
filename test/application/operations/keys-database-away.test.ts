import { afterEach, describe, expect, it } from "vitest";
import { World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

describe("API keys while the database does not answer", () => {
  it("are refused as unavailable, with what the caller must check before a repeat", async () => {
    world = new World();
    const { node, store } = await world.startNode();
    store.cut();
    const listed = await world.refusal(node.api.keys());
    const added = await world.refusal(node.api.addKey({ name: "shop" }, "operator:me"));
    const revoked = await world.refusal(node.api.revokeKey("shop", undefined, "operator:me"));
    store.heal();
    for (const refused of [listed, added, revoked]) expect(refused).toMatchObject({ code: "UNAVAILABLE" });
    for (const refused of [added, revoked]) expect(refused.message).toMatch(/list the keys/);
  });
});
