import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import type { Lanes } from "../../src/application/lane/lanes.ts";
import { type Fence, type LaneKey, laneKey } from "../../src/domain/lane.ts";
import { foldKept, type KeptLedger, keptOf } from "../../src/domain/ledger/index.ts";
import type { LaneStore } from "../../src/ports/lane-store.ts";
import { rowsOf } from "../domain/ledger/contents.ts";
import { loadLane } from "../doubles/memory-store/queries.ts";
import type { World } from "./world.ts";

/** What owners have folded from acknowledged commits is what a fresh load gives. At rest: nothing is under way then. */
export function checkRemembered({ nodes, database: { state }, clock }: World): void {
  for (const { node } of nodes) {
    const lanes = Reflect.get(node, "lanes") as Lanes;
    for (const lane of lanes.all()) {
      const loaded = loadLane(state, lane.fence, clock.now());
      if (loaded !== null) expect(rowsOf(lane.ledger), `memory of ${lane.key}`).toEqual(rowsOf(keptOf(loaded)));
    }
  }
}

/** Folds what each commit of a store acknowledges, and compares it wherever a lane is read again under the same term. */
export function watchMemory(store: LaneStore, isDifferent: (what: string) => void): void {
  const kept = new Map<LaneKey, { readonly token: number; readonly ledger: KeptLedger }>();
  const commit = store.commit.bind(store);
  const load = store.loadLane.bind(store);
  store.commit = async (writes) => {
    const committed = await commit(writes).catch((error: unknown) => {
      // It may be durable all the same.
      for (const { fence } of writes) kept.delete(laneKey(fence.lane));
      throw error;
    });
    for (const { lane, token, changes } of committed.changes) {
      const known = kept.get(laneKey(lane));
      if (known?.token === token) kept.set(laneKey(lane), { token, ledger: foldKept(known.ledger, changes) });
    }
    return committed;
  };
  store.loadLane = async (fence: Fence) => {
    const loaded = await load(fence);
    const known = kept.get(laneKey(fence.lane));
    if (loaded === null) return null;
    const [before, now] = [known?.token === fence.token ? rowsOf(known.ledger) : null, rowsOf(keptOf(loaded))];
    if (before !== null && !isDeepStrictEqual(before, now)) {
      isDifferent(`folded ${JSON.stringify(before)}, loaded ${JSON.stringify(now)}`);
    }
    kept.set(laneKey(fence.lane), { token: fence.token, ledger: keptOf(loaded) });
    return loaded;
  };
}
