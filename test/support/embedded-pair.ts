import type { Address } from "../../src/domain/lane.ts";
import { SIGNERS, type World, type WorldNode } from "./world.ts";

/** Two embedded nodes, neither of which can receive requests from the other. */
export interface EmbeddedPair {
  readonly owner: WorldNode;
  readonly other: WorldNode;
  /** A signer whose lane belongs to `owner`. */
  readonly signer: Address;
}

export async function startPair(world: World): Promise<EmbeddedPair> {
  const nodes = [await world.startNode({ embedded: true }), await world.startNode({ embedded: true })] as const;
  await world.until(() => nodes.every(({ node }) => node.gauges().lanesHeld > 0), 30_000);
  const signer = SIGNERS.find((each) => world.ownerOf(each) === "node-1");
  if (signer === undefined) throw new Error("the first node owns no lane");
  return { owner: nodes[0], other: nodes[1], signer };
}
