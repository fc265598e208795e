import type { Address } from "../../src/domain/lane.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { World, type WorldNode } from "./world.ts";

export const LANES = 1_000;
export const signersOf = (count: number): readonly Address[] =>
  Array.from({ length: count }, (_, n) => `0x${(n + 1).toString(16).padStart(40, "c")}` as Address);

export interface Calls {
  /** Number of requests by method name. */
  readonly byName: Map<string, number>;
  /**
   * The distinct times of requests. Requests made at the same time share one HTTP request, so the size of this set is
   * the number of HTTP requests.
   */
  readonly instants: Set<number>;
}

/** Counts every call of a port from now on. */
export function countCalls(port: object, clock: Clock): Calls {
  const calls: Calls = { byName: new Map(), instants: new Set() };
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(port))) {
    const member: unknown = name === "constructor" ? null : Reflect.get(port, name);
    if (typeof member !== "function") continue;
    const counted = (...parameters: unknown[]): unknown => {
      calls.byName.set(name, (calls.byName.get(name) ?? 0) + 1);
      calls.instants.add(clock.monotonicMs());
      return member.apply(port, parameters);
    };
    Object.defineProperty(port, name, { value: counted, configurable: true });
  }
  return calls;
}

/**
 * Starts a node with many lanes. Each call takes one millisecond in each direction, so that a call that depends on
 * another one is made at a later time. During the start calls take longer, so that the node acquires its lanes over
 * seconds and not all at once.
 */
export async function startWithLanes(lanes: number): Promise<{ readonly world: World; readonly entry: WorldNode }> {
  const settings = { pollIntervalMs: 1_000 };
  const world = new World({ signers: signersOf(lanes), settings });
  let wayMs = 25;
  const entry = await world.startNode({ latency: () => world.clock.sleep(wayMs) });
  wayMs = 1;
  await world.clock.advance(5_000);
  return { world, entry };
}
