import { inspect, isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import type { Lanes } from "../../src/application/lane/lanes.ts";
import type { OwnedLane } from "../../src/application/lane/owned-lane.ts";
import { rowOf } from "../../src/application/lane/tracked.ts";
import { type Fence, type LaneKey, laneKey } from "../../src/domain/lane.ts";
import { foldKept, type KeptLedger, keptOf } from "../../src/domain/ledger/index.ts";
import type { LaneSnapshot, LaneWrite } from "../../src/ports/lane-store.ts";
import { rowsOf } from "../domain/ledger/contents.ts";
import { FoldedRows } from "../domain/ledger/folded-rows.ts";
import { loadLane } from "../doubles/memory-store/queries.ts";
import type { MemoryStore } from "../doubles/memory-store.ts";
import type { World } from "./world.ts";

/**
 * Checks that the owners' memory, updated from acknowledged commits, equals a fresh load. Call it only when no work is
 * in progress. `hasLost`: the database has lost commits, which an owner may notice.
 */
export function checkRemembered({ nodes, database: { state }, clock }: World, hasLost = false): void {
  for (const { node, events, url } of nodes) {
    const reasons = events.flatMap((event) => (event.type === "lane.stopped" ? [event.reason] : []));
    const differing = reasons.filter((reason) => reason.startsWith("memory and database differ"));
    if (!hasLost) expect(differing, `${url} found a difference`).toEqual([]);
    const lanes = Reflect.get(Reflect.get(node, "core"), "lanes") as Lanes;
    for (const lane of lanes.all()) {
      const loaded = loadLane(state, lane.fence, clock.now());
      if (loaded === null) continue;
      expect(rowsOf(lane.ledger), `memory of ${lane.key}`).toEqual(rowsOf(keptOf(loaded)));
      checkFollowed(lane, loaded);
    }
  }
}

/**
 * Checks that the owner's memory of each open transaction equals the state acknowledged by the database. The next step
 * is planned from that memory.
 */
function checkFollowed(lane: OwnedLane, { tracking }: LaneSnapshot): void {
  const followed = [...lane.unmined.values(), ...lane.mined.values()].sort((a, b) => a.nonce - b.nonce);
  const rows = tracking.map(rowOf);
  expect(
    followed.map(({ acknowledged }) => acknowledged),
    `rows of ${lane.key}`,
  ).toEqual(rows);
  const expected = followed.map(
    ({ status, attempts, receipt, submitAttempts, acceptedOrdinal, lastError, held, expired }) => ({
      ...{ ...status, attempts, acceptedOrdinal, heldSince: held || null, expiredAt: expired || null },
      details: { receipt, submitAttempts, lastError },
    }),
  );
  expect(expected, `what is expected of ${lane.key}`).toEqual(rows);
}

interface Remembered {
  readonly history: number;
  readonly token: number;
  readonly ledger: KeptLedger;
  readonly rows: FoldedRows;
}

/**
 * Records what each commit of a store acknowledges. When a lane is reloaded by the same owner, compares the record with
 * the loaded rows, unless a write is in progress.
 */
export function watchMemory(store: MemoryStore, isDifferent: (what: string) => void): void {
  const remembered = new Map<LaneKey, Remembered>();
  const underWay = new Set<readonly LaneWrite[]>();
  const isWritten = (key: LaneKey) =>
    [...underWay].some((writes) => writes.some(({ fence }) => laneKey(fence.lane) === key));
  const commit = store.commit.bind(store);
  const load = store.loadLane.bind(store);
  const compare = (folded: unknown, loaded: unknown) => {
    if (!isDeepStrictEqual(folded, loaded)) isDifferent(`folded ${inspect(folded)}, loaded ${inspect(loaded)}`);
  };
  store.commit = async (writes) => {
    underWay.add(writes);
    const committed = await commit(writes)
      .catch((error: unknown) => {
        // The commit may have been carried out although it failed, so delete the record of the lane.
        for (const { fence } of writes) remembered.delete(laneKey(fence.lane));
        throw error;
      })
      .finally(() => underWay.delete(writes));
    for (const { lane, token, changes } of committed.changes) {
      const known = remembered.get(laneKey(lane));
      if (known?.token !== token) continue;
      known.rows.fold(changes);
      remembered.set(laneKey(lane), { ...known, ledger: foldKept(known.ledger, changes) });
    }
    return committed;
  };
  store.loadLane = async (fence: Fence) => {
    const loaded = await load(fence);
    if (loaded === null) return null;
    // A check of the chain's identity may load a lane while it is written, so that the rows belong to different states.
    // Do not compare them.
    if (isWritten(laneKey(fence.lane))) {
      remembered.delete(laneKey(fence.lane));
      return loaded;
    }
    const known = remembered.get(laneKey(fence.lane));
    const rows = new FoldedRows();
    const { history } = store.database.state;
    // After a loss, the database gives the same tokens again.
    const isSame = known?.token === fence.token && known.history === history;
    if (isSame) compare(rowsOf(known.ledger), rowsOf(keptOf(loaded)));
    for (const record of loaded.tracking) {
      const folded = isSame ? known.rows.of(record.txId) : undefined;
      if (folded !== undefined) compare(folded, rowOf(record));
      rows.read(record.txId, rowOf(record));
    }
    remembered.set(laneKey(fence.lane), { history, token: fence.token, ledger: keptOf(loaded), rows });
    return loaded;
  };
}
