import type { Member } from "../domain/cluster/placement.ts";
import type { Address, Fence, Lane } from "../domain/lane.ts";
import type { HeldLock } from "./session-lock.ts";

/** Report of an instance about itself; it may change. */
export interface Announcement extends Pick<Member, "draining" | "standsBack"> {
  /** Chains that it reaches. */
  readonly chains: readonly number[];
  /** Signers whose key it could not sign with. */
  readonly keysAway: readonly Address[];
}

/**
 * Identity of an instance, fixed for its lifetime. The instance id is new at each process start, and after it was
 * declared dead.
 */
interface InstanceIdentity extends Pick<Member, "instanceId" | "nodeId" | "url" | "mode"> {
  readonly version: string;
}

/** Published by an instance, so that other nodes can verify its requests. */
export interface InstanceKey {
  /** Public key of its process; the private key never leaves the process. */
  readonly publicKey: string;
  /**
   * Proof that key, instance and URL belong together, made with the secret that nodes share outside the database; null
   * if they share none.
   */
  readonly keyProof: string | null;
}

export interface InstanceRegistration extends InstanceIdentity, InstanceKey, Omit<Announcement, "draining"> {
  readonly leaseDurationMs: number;
  /** Signers whose keys it holds; fixed for its lifetime. */
  readonly signers: readonly Address[];
  /**
   * Earlier instances of the same process, and ones that it may have become without getting the answer. They are
   * declared dead by this registration, so that no node waits for their lanes or places lanes on them.
   */
  readonly replaces?: readonly string[];
}

/** Epoch of the feed that an instance belongs to. */
export interface Registered {
  readonly epoch: number;
  /** This registration began the epoch. */
  readonly begun: boolean;
  /** The epoch began because commits may have been lost: lanes wait for an operator. */
  readonly mayHaveLost: boolean;
}

/** With its last report. */
export interface InstanceRecord
  extends InstanceIdentity,
    Pick<InstanceKey, "keyProof">,
    Omit<Announcement, "keysAway"> {
  /** Null for a release that does not report it. */
  readonly keysAway: readonly Address[] | null;
  /** Null for a release before keys. */
  readonly publicKey: string | null;
  readonly startedAt: Date;
  readonly heartbeatAt: Date;
  readonly expiresAt: Date;
  /** Grows by one with each renewal. A claimant watches whether it stops growing. */
  readonly counter: number;
  readonly dead: boolean;
  /** The lease was over when the row was read, by the database's clock. */
  readonly expired: boolean;
  readonly lanes: number;
  /** Counter of kills given or ended in this database (kill-store.ts), returned with every read of an instance. */
  readonly killChanges: number;
  /** The database's clock at the read. */
  readonly readAt: Date;
  /** "none": no session lock is recorded. "gone": one is recorded, and the server no longer holds it. */
  readonly lock: "none" | "held" | "gone";
}

/**
 * Evidence of an instance's death. "expired": its heartbeat is overdue by the database's clock. "stood-still": a
 * claimant saw its counter unchanged, by the claimant's own clock. "lock-gone": a claimant missed its session lock
 * twice.
 */
export type DeathEvidence = "expired" | "stood-still" | "lock-gone";

/**
 * Result of recording a session lock. "unseen": the lock is not on the server that others read, so it is not recorded.
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
 * Liveness and tenure. Heartbeat and lane are in different rows: one small write renews every lane of an instance, and
 * a renewal never waits for the node's own open write. All times are `clock_timestamp()` of the database.
 */
export interface LeaseStore {
  /**
   * Registers an instance in the database's current history. If that history has changed and no node has noticed yet,
   * the feed begins a new epoch in the same transaction, and every term of every lane ends. Throws SchemaTooNew if the
   * schema is more than one release ahead.
   */
  registerInstance(registration: InstanceRegistration): Promise<Registered>;
  /** False if the row is dead, expired or gone. The instance is over; only a new one may continue. */
  renewInstance(instanceId: string, leaseDurationMs: number): Promise<boolean>;
  /** Records what the instance can serve, so that others can place lanes. Advice only: no write depends on it. */
  announce(instanceId: string, announcement: Announcement): Promise<void>;
  /**
   * Records a session lock: from now on others may take its end for the instance's end; null: no lock any more. It also
   * moves the counter, so that no node that looked before can declare the instance dead. A lock is recorded only if the
   * server that others read shows it: a direct address may lead to another server.
   */
  publishLock(instanceId: string, lock: HeldLock | null): Promise<LockPublished>;
  instances(): Promise<readonly InstanceRecord[]>;
  /** The signers that an instance registered with; none if it is gone. */
  signersOf(instanceId: string): Promise<readonly Address[]>;
  /**
   * Declares an instance dead for good, by compare-and-set on the counter, in its own transaction. For "expired" the
   * database's clock must agree, for "lock-gone" its list of locks; "stood-still" is the claimant's own observation.
   */
  declareDead(instanceId: string, counter: number, evidence: DeathEvidence): Promise<boolean>;
  /**
   * Graceful end: all lanes are released and the instance is dead, in one transaction. Returns the number of lanes
   * freed.
   */
  retireInstance(instanceId: string): Promise<number>;

  /**
   * No row: insert, token 1. Own lane: keep. Owner dead or none: take over, token + 1. Else: not leader. The claimant
   * must be alive.
   */
  acquireLane(lane: Lane, instanceId: string): Promise<Acquisition>;
  /**
   * The same for many lanes at once, skipping those that others hold or have locked; at most `limit`. Returns the lanes
   * now held.
   */
  claimLanes(
    lanes: readonly Lane[],
    instanceId: string,
    limit: number,
  ): Promise<readonly Extract<Acquisition, { fence: Fence }>[]>;
  /** Matches the exact term. False if the lane had another term already. */
  releaseLane(fence: Fence): Promise<boolean>;
  leases(): Promise<readonly LeaseRecord[]>;
}

/** The claimant's own instance is dead, expired or unknown, so it may not take a lane. Register a new one. */
export class InstanceOver extends Error {
  override readonly name = "InstanceOver";
  constructor(instanceId: string) {
    super(`instance ${instanceId} is over: register a new one`);
  }
}

/** The schema is more than one release ahead: this program must not use it. One line, for an operator. */
export class SchemaTooNew extends Error {
  override readonly name = "SchemaTooNew";
}
