/**
 * The live instances, what each can serve, and the intended owner of each lane. Derived from the heartbeat rows that
 * the lease reads anyway; the signers of an instance never change and are read once.
 *
 * Reads: instances and their signers. Writes: nothing. A wrong or outdated view costs a hop, never a wrong write (I10).
 */
import { holdsKey, type Member, place, rank, servedLanes } from "../../domain/cluster/placement.ts";
import { type Address, type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { AT_ONCE, at, isDue } from "../../domain/pace/when.ts";
import type { InstanceRecord, LeaseStore } from "../../ports/lease-store.ts";
import type { Ports } from "../../ports/ports.ts";

export class Membership {
  private readonly store;
  private readonly signers = new Map<string, ReadonlySet<Address>>();
  members: readonly Member[] = [];
  private placement: ReturnType<typeof place> = new Map();
  private fingerprint = "";

  constructor(store: Pick<LeaseStore, "signersOf">) {
    this.store = store;
  }

  /** Applies a read of the heartbeat rows. True if the view of the cluster changed. */
  async learn(instances: readonly InstanceRecord[]): Promise<boolean> {
    const alive = instances.filter((instance) => !instance.dead && !instance.expired);
    const fingerprint = alive
      .map(({ instanceId, ...each }) =>
        [instanceId, each.chains, each.draining, each.standsBack, each.keysAway].join(" "),
      )
      .sort()
      .join();
    if (fingerprint === this.fingerprint) return false;
    const members = await Promise.all(alive.map((instance) => this.memberOf(instance)));
    for (const known of this.signers.keys()) {
      if (!alive.some(({ instanceId }) => instanceId === known)) this.signers.delete(known);
    }
    this.members = members;
    this.placement = place(servedLanes(members), members);
    this.fingerprint = fingerprint;
    return true;
  }

  /** The member that should own the lane; null if no live member can serve it. */
  favourite(lane: Lane): Member | null {
    return this.placement.get(laneKey(lane)) ?? null;
  }

  /**
   * All members that should serve the lane, its intended owner first. If no live member can serve it, all that have its
   * key and are not draining.
   */
  candidates(lane: Lane): readonly Member[] {
    const favourite = this.favourite(lane);
    if (favourite === null) return this.members.filter((member) => holdsKey(member, lane) && !member.draining);
    return [favourite, ...rank(lane, this.members).filter((member) => member !== favourite)];
  }

  /** True if a live member holds the lane's key, even if none can use it right now. */
  isKnown(lane: Lane): boolean {
    return this.members.some((member) => holdsKey(member, lane));
  }

  servesChain(chainId: number): boolean {
    return this.members.some((member) => member.chains.has(chainId));
  }

  find(url: string): Member | null {
    return this.members.find((member) => member.url === url) ?? null;
  }

  private async memberOf(instance: InstanceRecord): Promise<Member> {
    const { instanceId, nodeId, url, mode, chains, draining, standsBack } = instance;
    const signers = this.signers.get(instanceId) ?? new Set(await this.store.signersOf(instanceId));
    this.signers.set(instanceId, signers);
    const keysAway = instance.keysAway === null ? null : new Set(instance.keysAway);
    return { instanceId, nodeId, url, mode, chains: new Set(chains), signers, draining, standsBack, keysAway };
  }
}

/**
 * Finds lanes that had no owner for the length of a lease, while this node leaves its lanes to other nodes
 * (domain/cluster/stand-back.ts). A node of an older release does not support that: it leaves the lane to this node,
 * while this node leaves it to the other. Without this check the lane would never have an owner.
 *
 * Reads: the leases, a few times per lease duration, and only while this node leaves its lanes to others. Writes:
 * nothing. An unchanged token shows that the lane had no owner between two reads.
 */

const LOOKS_PER_LEASE = 4;

type UnownedPorts = Pick<Ports, "clock"> & {
  readonly store: Pick<Ports["store"], "leases">;
  readonly leaseDurationMs: number;
};

export function unownedLanes({ store, clock, leaseDurationMs }: UnownedPorts) {
  let before = new Map<LaneKey, { readonly token: number; readonly sinceMs: number }>();
  let nextLook = AT_ONCE;
  return {
    /**
     * Those of the given lanes that had no owner at every read for the length of a lease. Empty if no read is due yet.
     */
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
    /** Discards earlier reads of the leases, because they are outdated. */
    forget() {
      before = new Map();
      nextLook = AT_ONCE;
    },
  };
}
