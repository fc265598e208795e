/**
 * Lanes that no node has acquired for the length of a lease. A node of an older release does not know that this one stands
 * back: it leaves lanes to this node that this node leaves to it, and without this file they would never have an owner.
 *
 * Reads: the leases, a few times a lease, and only while this node stands back. Writes: nothing. The token shows that the
 * lane had no owner between two reads.
 */
import { type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { AT_ONCE, at, isDue } from "../../domain/pace/when.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LeaseStore } from "../../ports/lease-store.ts";

interface UnownedLanesPorts {
  readonly store: Pick<LeaseStore, "leases">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly leaseDurationMs: number;
}

interface Free {
  readonly token: number;
  readonly sinceMs: number;
}

const LOOKS_PER_LEASE = 4;

export class UnownedLanes {
  private readonly ports: UnownedLanesPorts;
  private free: ReadonlyMap<LaneKey, Free> = new Map();
  private nextLook = AT_ONCE;

  constructor(ports: UnownedLanesPorts) {
    this.ports = ports;
  }

  /** Those of the lanes that were free at every read for a lease. None between two reads. */
  async among(lanes: readonly Lane[]): Promise<readonly Lane[]> {
    const { store, clock, leaseDurationMs } = this.ports;
    const nowMs = clock.monotonicMs();
    if (lanes.length === 0 || !isDue(this.nextLook, nowMs)) return [];
    this.nextLook = at(nowMs + leaseDurationMs / LOOKS_PER_LEASE);
    const records = new Map((await store.leases()).map((record) => [laneKey(record.lane), record]));
    const free = new Map<LaneKey, Free>();
    for (const lane of lanes) {
      const key = laneKey(lane);
      const { owner, token } = records.get(key) ?? { owner: null, token: 0 };
      if (owner !== null) continue;
      const before = this.free.get(key);
      free.set(key, before?.token === token ? before : { token, sinceMs: nowMs });
    }
    this.free = free;
    return lanes.filter((lane) => nowMs - (free.get(laneKey(lane))?.sinceMs ?? nowMs) >= leaseDurationMs);
  }

  /** An earlier reading says nothing about now. */
  forget(): void {
    this.free = new Map();
    this.nextLook = AT_ONCE;
  }
}
