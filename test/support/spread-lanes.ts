import { expect } from "vitest";
import type { Address } from "../../src/domain/lane.ts";
import { transfer, type World, type WorldNode } from "./world.ts";

/** Twenty signers, whose lanes are spread over the nodes of a cluster. */
export const TWENTY = Array.from(
  { length: 20 },
  (_, index) => `0x${(index + 16).toString(16).padStart(40, "c")}` as Address,
);

export async function startNodes(world: World, count: number): Promise<readonly WorldNode[]> {
  const nodes: WorldNode[] = [];
  for (let index = 0; index < count; index++) nodes.push(await world.startNode());
  await world.until(() => isBalanced(world, nodes), 30_000);
  return nodes;
}

export function lanesOf(node: WorldNode): number {
  return node.node.gauges().lanesHeld;
}

/** True if every lane has an owner and no node owns more than its share. */
export function isBalanced(world: World, nodes: readonly WorldNode[]): boolean {
  const held = nodes.map(lanesOf);
  const lanes = world.database.state.lanes.size;
  return held.reduce((sum, each) => sum + each, 0) === lanes && Math.max(...held) <= Math.ceil(lanes / nodes.length);
}

export function isOwner(world: World, node: WorldNode, signer: Address): boolean {
  const row = [...world.database.state.lanes.values()].find(({ lane }) => lane.signer === signer);
  const owner = row?.owner === null || row === undefined ? undefined : world.database.state.instances.get(row.owner);
  return owner?.url === node.url;
}

export function expectConsecutive(world: World, signers: readonly Address[]): void {
  for (const signer of signers) {
    const nonces = world
      .rows()
      .filter(({ lane }) => lane.signer === signer)
      .map(({ nonce }) => nonce);
    expect(nonces).toEqual(nonces.map((_, index) => index));
  }
}

/**
 * Starts a caller that sends one create after another to nodes that accept requests, and records how long each took.
 */
export function keepSending(
  world: World,
  nodes: readonly WorldNode[],
  waits: number[],
): { stop(): void; readonly ended: Promise<void> } {
  let stopped = false;
  const caller = async (offset: number): Promise<void> => {
    for (let n = offset; !stopped; n++) {
      const startedMs = world.clock.monotonicMs();
      await (nodes[n % nodes.length] as WorldNode).node.api.create(transfer({ signer: TWENTY[n % 20] as Address }));
      waits.push(world.clock.monotonicMs() - startedMs);
      await world.clock.sleep(20);
    }
  };
  const ended = Promise.all([0, 1, 2].map(caller)).then(() => undefined);
  ended.catch(() => undefined);
  return {
    stop: () => {
      stopped = true;
    },
    ended,
  };
}
