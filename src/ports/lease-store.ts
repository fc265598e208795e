import type { Address, Fence, Lane } from "../domain/lane.ts";
import type { Member } from "../domain/placement.ts";
import type { HeldLock } from "./session-lock.ts";

/** What an instance says of itself; it may change. */
export interface Announcement extends Pick<Member, "draining" | "standsBack"> {
  /** Chains it reaches. */
  readonly chains: readonly number[];
  /** Of its signers, those whose key it could not sign with. */
  readonly keysAway: readonly Address[];
}

/** Which one it is; the same for as long as it lives. The instance id is new at each process start, and after a declared death. */
interface InstanceIdentity extends Pick<Member, "instanceId" | "nodeId" | "url" | "mode"> {
  readonly version: string;
}

/** What an instance publishes, so that other nodes know its requests from those of a stranger. */
export interface InstanceKey {
  /** Of the key pair of its process; the private half never leaves that. */
  readonly publicKey: string;
  /** That key, instance and URL belong together, by the secret that the nodes share outside the database; null: they share none. */
  readonly keyProof: string | null;
}

export interface InstanceRegistration extends InstanceIdentity, InstanceKey, Omit<Announcement, "draining"> {
  readonly leaseDurationMs: number;
  /** Whose keys it holds; the same for as long as it lives. */
  readonly signers: readonly Address[];
  /**
   * What the same process was before, or may have become without hearing of it: dead with this registration, so that
   * no node waits for the lanes of the one, or places lanes on the other.
   */
  readonly replaces?: readonly string[];
}

/** The feed's epoch that an instance belongs to. */
export interface Registered {
  readonly epoch: number;
  /** This registration began it. */
  readonly begun: boolean;
  /** It began because commits may have been lost: lanes wait for an operator. */
  readonly mayHaveLost: boolean;
}

/** With what it last announced. */
export interface InstanceRecord
  extends InstanceIdentity,
    Pick<InstanceKey, "keyProof">,
    Omit<Announcement, "keysAway"> {
  /** Null: of a release that does not say. */
  readonly keysAway: readonly Address[] | null;
  /** Null: of a release before keys. */
  readonly publicKey: string | null;
  readonly startedAt: Date;
  readonly heartbeatAt: Date;
  readonly expiresAt: Date;
  /** Grows by one with each renewal. A counter that stands still is what a claimant watches. */
  readonly counter: number;
  readonly dead: boolean;
  /** By the database's clock, at the moment of reading. */
  readonly expired: boolean;
  readonly lanes: number;
  /** How often an order to stop was given or ended in this database (kill-store.ts), told with every look at an instance. */
  readonly killChanges: number;
  /** The database's clock as this was read. */
  readonly readAt: Date;
  /** "none": it has recorded no session lock. "gone": it has, and the server does not hold that lock any more. */
  readonly lock: "none" | "held" | "gone";
}

/**
 * Why an instance is declared dead. "expired": its heartbeat is past by the database's clock. "stood-still": a claimant
 * watched its counter on a clock of its own. "lock-gone": a claimant missed its session lock, twice.
 */
export type DeathEvidence = "expired" | "stood-still" | "lock-gone";

/** What became of telling others about a session lock. "unseen": it is not where they look, and none is told of. */
export type LockTold = "told" | "unseen" | "over";

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
 * Liveness and tenure. Heartbeat and lane live in different rows: one small write renews every lane of an instance, and
 * a renewal never waits behind one's own open write. All times are `clock_timestamp()` of the database.
 */
export interface LeaseStore {
  /**
   * Begins an instance in the history of the database that it finds. Where no node has noticed yet that this is another
   * one than before, the feed begins a new epoch in the same transaction, and every term of every lane ends with the old
   * one. Throws SchemaTooNew where the store has moved on by more than one release.
   */
  registerInstance(registration: InstanceRegistration): Promise<Registered>;
  /** False: the row is dead, expired or gone. The instance is over; only a new one may go on. */
  renewInstance(instanceId: string, leaseDurationMs: number): Promise<boolean>;
  /** What the instance can serve, for the others to place lanes by. Advice: no write depends on it. */
  announce(instanceId: string, announcement: Announcement): Promise<void>;
  /**
   * From here on others may take the end of this lock for the instance's end; null: of no lock any more. It is a sign of
   * life and moves the counter, so that no node that looked before can declare the instance dead. Only a lock that shows
   * where the others look is told of: a direct address may lead to another server.
   */
  tellLock(instanceId: string, lock: HeldLock | null): Promise<LockTold>;
  instances(): Promise<readonly InstanceRecord[]>;
  /** The signers an instance registered with; none where it is gone. */
  signersOf(instanceId: string): Promise<readonly Address[]>;
  /**
   * Dead once and for all, by compare-and-set on the counter, in a transaction of its own. With `evidence: "expired"` the
   * database's clock must agree, with "lock-gone" its list of locks; "stood-still" is the claimant's own word.
   */
  declareDead(instanceId: string, counter: number, evidence: DeathEvidence): Promise<boolean>;
  /** Graceful end: all lanes released and the instance dead, in one transaction. Returns how many lanes it freed. */
  retireInstance(instanceId: string): Promise<number>;

  /** Absent → insert, token 1; mine → keep; owner dead or none → take over, token + 1; else not leader. The claimant must be alive. */
  acquireLane(lane: Lane, instanceId: string): Promise<Acquisition>;
  /** The same for many at once, skipping what others hold or have locked; at most `limit`. Returns what is now held. */
  claimLanes(
    lanes: readonly Lane[],
    instanceId: string,
    limit: number,
  ): Promise<readonly Extract<Acquisition, { fence: Fence }>[]>;
  /** Matches the exact term. False: it was not ours any more. */
  releaseLane(fence: Fence): Promise<boolean>;
  leases(): Promise<readonly LeaseRecord[]>;
}

/** The claimant's own instance is dead, expired or unknown: it may take nothing. Register a new one. */
export class InstanceOver extends Error {
  constructor(instanceId: string) {
    super(`instance ${instanceId} is over: register a new one`);
    this.name = "InstanceOver";
  }
}

/** The store was brought forward by more than one release: this program may not act on it. One line, for an operator. */
export class SchemaTooNew extends Error {
  override readonly name = "SchemaTooNew";
}
