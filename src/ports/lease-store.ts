import type { Member } from "../domain/cluster/placement.ts";
import type { Address, Fence, Lane } from "../domain/lane.ts";
import type { HeldLock } from "./session-lock.ts";

/** What an instance reports about itself. It may change while the instance runs. */
export interface Announcement extends Pick<Member, "draining" | "standsBack"> {
  /** Chains whose endpoints the instance reaches. */
  readonly chains: readonly number[];
  /** Signers for which signing failed on this instance. */
  readonly keysAway: readonly Address[];
}

/**
 * Identity of an instance, fixed for its lifetime. The instance id is new at each process start, and after the instance
 * was declared dead.
 */
interface InstanceIdentity extends Pick<Member, "instanceId" | "nodeId" | "url" | "mode"> {
  readonly version: string;
}

/** Key that an instance publishes, so that other nodes can verify its requests. */
export interface InstanceKey {
  /** Public key of the instance's process; the private key never leaves the process. */
  readonly publicKey: string;
  /**
   * Proof that key, instance and URL belong together, made with the secret that nodes share outside the database; null
   * if they share none.
   */
  readonly keyProof: string | null;
}

export interface InstanceRegistration extends InstanceIdentity, InstanceKey, Omit<Announcement, "draining"> {
  readonly leaseDurationMs: number;
  /** Signers whose keys the instance holds; fixed for its lifetime. */
  readonly signers: readonly Address[];
  /**
   * Earlier instances of the same process, including registrations whose response was lost. The new registration
   * declares them dead, so that no node waits for their lanes or assigns lanes to them.
   */
  readonly replaces?: readonly string[];
}

/** Epoch of the completion feed in which an instance was registered. */
export interface Registered {
  readonly epoch: number;
  /** True if this registration began the feed's current epoch. */
  readonly begun: boolean;
  /** True if the feed's epoch began because commits may have been lost: then lanes wait for an operator. */
  readonly mayHaveLost: boolean;
}

/** An instance with its last report. */
export interface InstanceRecord
  extends InstanceIdentity,
    Pick<InstanceKey, "keyProof">,
    Omit<Announcement, "keysAway"> {
  /** Signers for which signing failed on the instance; null if its release does not report them. */
  readonly keysAway: readonly Address[] | null;
  /** Public key of the instance; null if its release has no keys yet. */
  readonly publicKey: string | null;
  readonly startedAt: Date;
  readonly heartbeatAt: Date;
  readonly expiresAt: Date;
  /**
   * Counter that grows by one with each renewal of the lease. A node that wants to take over checks whether it stops
   * growing.
   */
  readonly counter: number;
  readonly dead: boolean;
  /** True if the instance's lease had expired, by the database's clock, when the row was read. */
  readonly expired: boolean;
  readonly lanes: number;
  /**
   * Counter of kills that were set or ended in this database (kill-store.ts), returned with every read of an instance.
   */
  readonly killChanges: number;
  /** Time of the read, by the database's clock. */
  readonly readAt: Date;
  /**
   * State of the instance's session lock. "none": none is recorded. "gone": one is recorded, and the server no longer
   * holds it.
   */
  readonly lock: "none" | "held" | "gone";
}

/**
 * Evidence of an instance's death. "expired": its heartbeat is overdue by the database's clock. "stood-still": another
 * node saw its counter unchanged for too long, by that node's own clock. "lock-gone": another node found its session
 * lock missing twice.
 */
export type DeathEvidence = "expired" | "stood-still" | "lock-gone";

/**
 * Result of recording a session lock. "unseen": the lock is not visible on the server that other nodes read, so it is
 * not recorded.
 */
export type LockPublished = "told" | "unseen" | "over";

export type Acquisition =
  | { readonly result: "acquired" | "kept" | "takenOver"; readonly fence: Fence }
  | { readonly result: "notLeader"; readonly owner: LaneOwner };

export type LaneOwner = Pick<InstanceRecord, "instanceId" | "nodeId" | "url" | "expiresAt">;

export interface LeaseRecord {
  readonly lane: Lane;
  readonly owner: LaneOwner | null;
  readonly token: number;
  readonly acquiredAt: Date | null;
}

/**
 * Liveness of instances and ownership of lanes. The heartbeat is not in the lanes' rows, but in a row of the instance.
 * So one small write renews every lane of an instance, and a renewal never waits for the node's own open write. All
 * times are `clock_timestamp()` of the database.
 */
export interface LeaseStore {
  /**
   * Registers an instance. If the database's history has changed (a restore, lost commits) and no node has noticed yet,
   * the feed begins a new epoch in the same transaction, and no lane has an owner any more. Throws SchemaTooNew if the
   * schema is more than one release ahead.
   */
  registerInstance(registration: InstanceRegistration): Promise<Registered>;
  /**
   * Renews the lease of an instance. Returns false if the instance is marked dead, expired or deleted: it can never be
   * renewed, and the process must register a new instance.
   */
  renewInstance(instanceId: string, leaseDurationMs: number): Promise<boolean>;
  /**
   * Records what the instance can serve, so that other nodes can decide which lanes to leave to it. It is advice only:
   * no write depends on it.
   */
  announce(instanceId: string, announcement: Announcement): Promise<void>;
  /**
   * Records the instance's session lock; null: it has none any more. From then on, other nodes may treat the end of the
   * lock as the end of the instance. The instance's counter is increased too, so that a node that read the old state
   * cannot declare the instance dead. The lock is recorded only if it is visible on the server that other nodes read: a
   * URL that bypasses the pooler may lead to another server.
   */
  publishLock(instanceId: string, lock: HeldLock | null): Promise<LockPublished>;
  instances(): Promise<readonly InstanceRecord[]>;
  /** The signers that an instance registered with; empty if the instance no longer exists. */
  signersOf(instanceId: string): Promise<readonly Address[]>;
  /**
   * Declares an instance dead for good, by compare-and-set on its counter, in a separate transaction. For "expired" the
   * database's clock must agree, for "lock-gone" its list of locks; "stood-still" relies on the calling node's own
   * observation.
   */
  declareDead(instanceId: string, counter: number, evidence: DeathEvidence): Promise<boolean>;
  /**
   * Graceful end of an instance: all its lanes are released and it is marked dead, in one transaction. Returns the
   * number of lanes released.
   */
  retireInstance(instanceId: string): Promise<number>;

  /**
   * Acquires a lane. If the lane has no row, inserts it with token 1. If the caller owns it, nothing changes. If its
   * owner is dead or there is none, takes it over with token + 1. Otherwise the result is "not leader". The calling
   * instance must be alive.
   */
  acquireLane(lane: Lane, instanceId: string): Promise<Acquisition>;
  /**
   * Acquires many lanes at once, skipping those that others own or have locked; at most `limit`. Returns the lanes now
   * owned.
   */
  claimLanes(
    lanes: readonly Lane[],
    instanceId: string,
    limit: number,
  ): Promise<readonly Extract<Acquisition, { fence: Fence }>[]>;
  /** Releases a lane if the caller still owns it under this fencing token. Returns false otherwise. */
  releaseLane(fence: Fence): Promise<boolean>;
  leases(): Promise<readonly LeaseRecord[]>;
}

/** The instance that wants to acquire a lane is itself dead, expired or unknown. It has to register anew. */
export class InstanceOver extends Error {
  override readonly name = "InstanceOver";
  constructor(instanceId: string) {
    super(`instance ${instanceId} is over: register a new one`);
  }
}

/**
 * The database schema is more than one release ahead: this program must not use it. The message is one line for an
 * operator.
 */
export class SchemaTooNew extends Error {
  override readonly name = "SchemaTooNew";
}
