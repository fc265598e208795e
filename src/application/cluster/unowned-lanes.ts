/**
 * Lanes that no node has acquired for the length of a lease. A node of an older release does not know that this one stands
 * back: it leaves lanes to this node that this node leaves to it, and without this file they would never have an owner.
 *
 * Reads: the leases, a few times a lease, and only while this node stands back. Writes: nothing. The token shows that the
 * lane had no owner between two reads.
 */
import { type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { AT_ONCE, at, isDue } from "../../domain/pace/when.ts";
import type { Ports } from "../../ports/ports.ts";

const LOOKS_PER_LEASE = 4;

type UnownedPorts = Pick<Ports, "clock"> & {
  readonly store: Pick<Ports["store"], "leases">;
  readonly leaseDurationMs: number;
};

export function unownedLanes({ store, clock, leaseDurationMs }: UnownedPorts) {
  let before = new Map<LaneKey, { readonly token: number; readonly sinceMs: number }>();
  let nextLook = AT_ONCE;
  return {
    /** Those of the lanes that were free at every read for a lease. None between two reads. */
    async among(lanes: readonly Lane[]): Promise<readonly Lane[]> {
      const nowMs = clock.monotonicMs();
      if (lanes.length === 0 || !isDue(nextLook, nowMs)) return [];
      nextLook = at(nowMs + leaseDurationMs / LOOKS_PER_LEASE);
      const records = new Map((await store.leases()).map((record) => [laneKey(record.lane), record]));
      const free: typeof before = new Map();
      for (const key of lanes.map(laneKey)) {
        const { owner, token } = records.get(key) ?? { owner: null, token: 0 };
        if (owner !== null) continue;
        const known = before.get(key);
        free.set(key, known?.token === token ? known : { token, sinceMs: nowMs });
      }
      before = free;
      return lanes.filter((lane) => nowMs - (free.get(laneKey(lane))?.sinceMs ?? nowMs) >= leaseDurationMs);
    },
    /** An earlier reading says nothing about now. */
    forget() {
      before = new Map();
      nextLook = AT_ONCE;
    },
  };
}
