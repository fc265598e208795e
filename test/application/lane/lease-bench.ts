import { Lease } from "../../../src/application/lane/lease.ts";
import type { Failpoint } from "../../../src/ports/failpoints.ts";
import type { InstanceRecord } from "../../../src/ports/lease-store.ts";
import { createManualClock, type ManualClock } from "../../doubles/manual-clock.ts";
import { MemoryNetwork } from "../../doubles/memory-peers.ts";
import { MemorySessionLock } from "../../doubles/memory-session-lock.ts";
import { MemoryDatabase, type MemoryStore } from "../../doubles/memory-store.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { type RecordedTelemetry, recordTelemetry } from "../../support/recorded-telemetry.ts";
import { NODE_SETTINGS, SIGNER } from "../../support/world.ts";

type LeaseSettings = (typeof NODE_SETTINGS)["lease"];

export const DURATION = 10_000;
export const RENEW = 3_000;
export const SKEW = 1_000;
export const LANE = { chainId: 1, signer: SIGNER };

export interface Holder {
  readonly lease: Lease;
  readonly store: MemoryStore;
  readonly lock: MemorySessionLock;
  readonly telemetry: RecordedTelemetry;
  /**
   * Callbacks that the node received about lost and freed lanes, as texts. The text about a lost lane tells whether the
   * node was still allowed to act for it.
   */
  readonly received: string[];
  /**
   * Callbacks of the lease, as texts: "silent" if the node failed to renew it for too long, "acquainted" once the node
   * has found out which other instances are live.
   */
  readonly noted: string[];
  readonly passed: Failpoint[];
}

/** Leases of several nodes on one database, and the clock they share. */
export class LeaseBench {
  readonly clock: ManualClock = createManualClock();
  readonly database = new MemoryDatabase(this.clock);
  private readonly holders: Holder[] = [];
  private readonly locks: boolean;

  /** By default there are no session locks, as behind a connection pooler: the lease alone decides. */
  constructor({ locks = false }: { readonly locks?: boolean } = {}) {
    this.locks = locks;
  }

  holder(
    name: string,
    lock = new MemorySessionLock(this.database),
    leaseSettings: LeaseSettings = NODE_SETTINGS.lease,
  ): Holder {
    const store = this.database.connect();
    if (!this.locks) lock.cut();
    const telemetry = recordTelemetry();
    const received: string[] = [];
    const noted: string[] = [];
    const passed: Failpoint[] = [];
    const entropy = createSeededEntropy(this.holders.length + 1, this.clock);
    const failpoint = (point: Failpoint) => void passed.push(point);
    const peers = new MemoryNetwork(this.clock).connect();
    const serving = () => ({ signers: [SIGNER], chains: [LANE.chainId], standsBack: false, keysAway: [] });
    const lease = new Lease(
      { store, clock: this.clock, entropy, telemetry, failpoint, sessionLock: lock, peers, serving },
      { ...NODE_SETTINGS, nodeId: name, url: `http://${name}`, lease: leaseSettings },
      {
        onInstances: async () => undefined,
        onLost: () => received.push(`lost, may act: ${lease.mayAct()}`),
        onFreed: () => received.push("freed"),
        onSilence: () => noted.push("silent"),
        onAcquainted: () => noted.push("acquainted"),
      },
    );
    const made = { lease, store, lock, telemetry, received, noted, passed };
    this.holders.push(made);
    return made;
  }

  async started(name: string, lock?: MemorySessionLock, leaseSettings?: LeaseSettings): Promise<Holder> {
    const made = this.holder(name, lock, leaseSettings);
    await made.lease.start();
    return made;
  }

  row(instanceId: string): Omit<InstanceRecord, "expired" | "lanes" | "lock" | "killChanges" | "readAt"> | undefined {
    return this.database.state.instances.get(instanceId);
  }

  async close(): Promise<void> {
    for (const { lease, store } of this.holders.splice(0)) {
      store.resume();
      const over = lease.abandon();
      await this.clock.advance(1_000);
      await over;
    }
  }
}
