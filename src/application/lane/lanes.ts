/**
 * The lanes this node owns. Acquires lanes on demand and at start, resumes each from the database alone, and drops
 * lanes that were fenced. A lane whose memory may differ from the database is dropped and reloaded under the same term.
 */
import { DatabaseSilent, FencepostError, notLeader } from "../../domain/errors.ts";
import { type Address, type Fence, type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import type { Clock } from "../../ports/clock.ts";
import {
  HistoryChanged,
  type LaneChanges,
  type LaneStore,
  OutcomeUnknown,
  StoreUnavailable,
} from "../../ports/lane-store.ts";
import { type Acquisition, InstanceOver, type LeaseStore } from "../../ports/lease-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Signer } from "../../ports/signer.ts";
import type { ChainSettings } from "../settings.ts";
import { sideBySide } from "./activity.ts";
import { BetweenOwners, LeaseLapsed } from "./between-owners.ts";
import { keepTime } from "./lane-writer.ts";
import { type LaneIndex, OwnedLane } from "./owned-lane.ts";
import { type Ending, noteFenced, Term, type TermPorts } from "./term.ts";
import { keepPace, resubmitEveryMs } from "./tracked.ts";

/** The settings of a chain that resuming a lane needs. */
interface ServedChain extends LaneIndex {
  readonly settings: Pick<ChainSettings, "resubmitIntervalMs">;
}

interface LanesPorts extends Pick<Ports, "clock" | "telemetry" | "failpoint"> {
  readonly store: LeaseStore & LaneStore;
  readonly signer: Pick<Signer, "addresses">;
  readonly lease: TermPorts["lease"] & { readonly instanceId: string; historyChanged(error: HistoryChanged): void };
  readonly kills: TermPorts["kills"];
  readonly writer: TermPorts["writer"] & { idle(lane?: Lane): Promise<void> };
  readonly chains: ReadonlyMap<number, ServedChain>;
  readonly placement: {
    /** True if placement assigns this lane to this node, or if no known member can serve it. */
    isOurs(lane: Lane): boolean;
    /** Lanes assigned to other nodes that this node should claim, because they had no owner for long. */
    unownedAmong(lanes: readonly Lane[]): Promise<readonly Lane[]>;
    /** True if a live other node should get the lane: this node gave it away a moment ago, or just lost its lanes. */
    isForAnother(lane: Lane): Promise<boolean>;
    /** The error for a create if this node cannot act for the lane. */
    refusal(lane: Lane): Promise<FencepostError>;
  };
  /** Called once a lane is resumed, to start its work. */
  readonly onResumed: (lane: OwnedLane) => void;
}

type Held = Extract<Acquisition, { fence: Fence }>;

const RESUME_AT_ONCE = 8;
/** How long a busy database is retried: half of the router's wait, so that the caller can try another node in time. */
const BUSY: Patience = {
  forMs: 2_000,
  pauseMs: 50,
  mayPass: (error) => error instanceof StoreUnavailable && error.busy,
};
const STARTING_OVER = "this node was taken for dead and starts over";

export class Lanes {
  private readonly ports;
  private readonly termPorts: TermPorts;
  private readonly held = new Map<LaneKey, OwnedLane>();
  /** Cached list of the owned lanes, until they change: ten thousand lanes must not be copied many times a second. */
  private listed: readonly OwnedLane[] | null = null;
  private readonly listedByChain = new Map<number, readonly OwnedLane[]>();
  private readonly acquiring = new Map<LaneKey, Promise<OwnedLane>>();
  /** Lanes to be acquired in the background: reloaded ones, and those whose acquisition failed on the database. */
  private readonly wanted = new Map<LaneKey, Lane>();
  /** Lanes being handed over: this node acts for them no longer, and no other node owns them yet. */
  private readonly leaving = new Set<LaneKey>();
  private readonly addresses: ReadonlySet<Address>;
  private closedBecause: string | null = null;
  /** True if an attempt to claim all free lanes failed and must be repeated. */
  claimOwed = false;
  /** Number of wanted lanes that are being acquired now. */
  private retrying = 0;

  constructor(ports: LanesPorts) {
    this.ports = ports;
    this.termPorts = { ...ports, reload: (reading, reason) => this.reload(reading, reason) };
    this.addresses = new Set(ports.signer.addresses());
  }

  get size(): number {
    return this.held.size;
  }

  all(): readonly OwnedLane[] {
    this.listed ??= [...this.held.values()];
    return this.listed;
  }

  onChain(chainId: number): readonly OwnedLane[] {
    const listed = this.listedByChain.get(chainId);
    if (listed !== undefined) return listed;
    const found = this.all().filter((lane) => lane.lane.chainId === chainId);
    this.listedByChain.set(chainId, found);
    return found;
  }

  /** Returns the lane under our own term; acquires a free lane. Throws UNKNOWN_SIGNER, NOT_LEADER or UNAVAILABLE. */
  async own(lane: Lane): Promise<OwnedLane> {
    const key = laneKey(lane);
    const owned = this.held.get(key);
    if (owned !== undefined && this.ports.lease.mayAct()) return owned;
    if (this.closedBecause !== null) throw new BetweenOwners(this.closedBecause);
    if (this.leaving.has(key) || !this.serves(lane)) throw await this.refusal(lane);
    if (!this.ports.lease.mayAct()) throw new LeaseLapsed();
    return this.acquire(lane, async () => {
      if (await this.isForAnother(lane)) throw await this.refusal(lane);
      const acquisition = await this.ports.store.acquireLane(lane, this.ports.lease.instanceId);
      this.summarise([acquisition.result]);
      return acquisition;
    });
  }

  /** Claims and resumes all free lanes that this node can serve. */
  async claimAll(): Promise<void> {
    const { store, chains, lease } = this.ports;
    // Called once a second: skip the iteration over ten thousand lanes if all of them are owned.
    if (this.held.size === chains.size * this.addresses.size) {
      this.claimOwed = false;
      return;
    }
    const servable = [...chains.keys()].flatMap((chainId) =>
      [...this.addresses].map((address) => ({ chainId, signer: address })),
    );
    const missing = await this.claimable(servable.filter((lane) => !this.held.has(laneKey(lane))));
    const free = missing.filter((lane) => this.isFree(lane));
    this.claimOwed = missing.length > 0 && this.closedBecause === null;
    if (!this.claimOwed || free.length === 0) return;
    const claimed = await store.claimLanes(free, lease.instanceId, free.length);
    // Acquisitions that were under way were skipped in this claim. If one of them read the lane before it was freed, no
    // node gets it and no other claim follows. So claim again.
    this.claimOwed = free.length < missing.length;
    await sideBySide(claimed, RESUME_AT_ONCE, async (acquisition) => {
      const { lane } = acquisition.fence;
      // A create that arrived meanwhile may have resumed the lane already; two copies in memory would act twice.
      if (this.held.has(laneKey(lane))) return;
      await this.acquire(lane, async () => acquisition).catch(() => undefined);
    });
    this.summarise(claimed.map(({ result }) => result));
  }

  /**
   * Lanes to claim: those that placement assigns to this node, and those that had no owner for long. If the read of the
   * latter fails, the next claim repeats it.
   */
  private async claimable(lanes: readonly Lane[]): Promise<readonly Lane[]> {
    const { placement } = this.ports;
    const ours = new Set(lanes.filter((lane) => placement.isOurs(lane)));
    const unowned = await placement.unownedAmong(lanes.filter((lane) => !ours.has(lane))).catch(() => []);
    return [...ours, ...unowned];
  }

  /** Reloads the lane from the database: now, or as soon as the database answers. */
  reload({ term }: Pick<OwnedLane, "term">, reason: string): void {
    const lane = this.held.get(laneKey(term.fence.lane));
    if (lane?.term !== term) return;
    this.drop(lane, reason);
    if (this.closedBecause === null) this.wanted.set(lane.key, lane.lane);
  }

  holds(lane: Lane): boolean {
    return this.held.has(laneKey(lane));
  }

  find(lane: Lane): OwnedLane | null {
    return this.held.get(laneKey(lane)) ?? null;
  }

  /**
   * Releases a lane so that another node can acquire it at once: no new work begins, and open writes commit first.
   * Sends in flight are not waited for, because their claims show the next owner that the bytes may have been sent.
   * Returns false if the lane is still ours.
   */
  async handOver(lane: OwnedLane, reason: string): Promise<boolean> {
    if (lane.term.hasEnded) return false;
    this.leaving.add(lane.key);
    this.drop(lane, reason);
    try {
      await this.ports.writer.idle(lane.lane);
      if (await this.patiently(() => this.ports.store.releaseLane(lane.fence))) {
        this.ports.telemetry.emit({ type: "lease.released", lane: lane.lane, token: lane.fence.token });
      }
      return true;
    } catch {
      // The release failed, so the database still assigns the lane to this instance and no other node can acquire it:
      // keep it until it can be released.
      if (this.closedBecause === null) this.wanted.set(lane.key, lane.lane);
      return false;
    } finally {
      this.leaving.delete(lane.key);
    }
  }

  /** Applies acknowledged commits to an owned lane; a dropped one is loaded only after all its writes have ended. */
  fold({ lane, token, changes }: LaneChanges): void {
    const owned = this.held.get(laneKey(lane));
    if (owned === undefined || owned.fence.token !== token) return;
    try {
      owned.fold(changes);
    } catch (error) {
      this.reload(owned, `memory and database differ: ${messageOf(error)}`);
    }
  }

  /** Called when the database refused a write of this node because another node owns the lane. */
  lose(fence: Fence, write: string): void {
    const lane = this.held.get(laneKey(fence.lane));
    noteFenced(this.ports.telemetry, fence, write, "database");
    if (lane?.fence.token === fence.token) this.drop(lane, "fenced", "lost");
  }

  /** Called when a write was not made. It counts as fenced if its term is over: the database would have refused it. */
  giveUp(fence: Fence, write: string): void {
    const { lease, telemetry } = this.ports;
    if (lease.mayAct() && lease.instanceId === fence.instanceId) return;
    noteFenced(telemetry, fence, write, "deadline");
  }

  /** Drops all lanes: the instance has ended or is about to end, and every term ends with it. */
  dropAll(reason: string, how: Ending): void {
    for (const lane of this.all()) this.drop(lane, reason, how);
    this.wanted.clear();
  }

  /** Stops acquiring lanes; owned ones stay until they are dropped. */
  close(reason: string): void {
    this.closedBecause = reason;
  }

  /**
   * Tries to acquire the lanes that are still to be acquired, a few at a time. Called on every beat; if the database is
   * unavailable, the next beat tries again. A lane that waits for a row lock delays no other.
   */
  async retryWanted(): Promise<void> {
    await sideBySide(this.wanted, RESUME_AT_ONCE - this.retrying, async ([key, lane]) => {
      if (this.acquiring.has(key) || !this.ports.lease.mayAct()) return;
      this.retrying++;
      const isRefused = (error: unknown) => error instanceof FencepostError && error.code !== "UNAVAILABLE";
      if (await this.own(lane).then(() => true, isRefused)) this.wanted.delete(key);
      this.retrying--;
    });
  }

  /**
   * True if the lane should be left to another node. Other nodes may not have noticed yet that this node gave the lane
   * away, and still send it requests. Taking the lane back at once would move it twice. Never true for a lane in
   * `wanted`: in the database it may be ours, and then no other node can acquire it.
   */
  private async isForAnother(lane: Lane) {
    return !this.wanted.has(laneKey(lane)) && (await this.ports.placement.isForAnother(lane));
  }

  private async refusal(lane: Lane) {
    try {
      return await this.ports.placement.refusal(lane);
    } catch (error) {
      return new DatabaseSilent("nothing was accepted", error);
    }
  }

  private serves(lane: Lane) {
    return this.addresses.has(lane.signer) && this.ports.chains.has(lane.chainId);
  }

  private isFree(lane: Lane) {
    const key = laneKey(lane);
    return !this.held.has(key) && !this.acquiring.has(key) && !this.leaving.has(key);
  }

  /** Acquires a lane, one attempt at a time; simultaneous callers share the attempt. */
  private acquire(lane: Lane, obtain: () => Promise<Acquisition>): Promise<OwnedLane> {
    const key = laneKey(lane);
    const underWay = this.acquiring.get(key);
    if (underWay !== undefined) return underWay;
    const attempt = this.resume(lane, obtain)
      .catch((error: FencepostError) => {
        // The database may already assign the lane to this node, and then no other node can acquire it: retry later.
        if (error.code === "UNAVAILABLE" && this.closedBecause === null) this.wanted.set(key, lane);
        throw error;
      })
      .finally(() => this.acquiring.delete(key));
    this.acquiring.set(key, attempt);
    return attempt;
  }

  private async resume(lane: Lane, obtain: () => Promise<Acquisition>) {
    try {
      // Wait until earlier writes of the lane have ended, because it is loaded from the database next.
      await this.ports.writer.idle(lane);
      const acquisition = await this.patiently(obtain);
      const { result } = acquisition;
      const token = result === "notLeader" ? null : acquisition.fence.token;
      this.ports.telemetry.emit({ type: "lease.acquire", lane, result, token });
      if (acquisition.result === "notLeader") throw ownedBy(acquisition.owner.url || null);
      await this.ports.failpoint("lease.acquired");
      return await this.load(acquisition);
    } catch (error) {
      if (error instanceof FencepostError) throw error;
      if (error instanceof InstanceOver) throw new BetweenOwners(STARTING_OVER);
      if (error instanceof HistoryChanged) this.ports.lease.historyChanged(error);
      throw new DatabaseSilent("nothing was accepted", error);
    }
  }

  /** Retries after a lock, idle or statement timeout, which changed nothing, before the caller gets an error. */
  private patiently<T>(work: () => Promise<T>) {
    return askAgain(work, this.ports.clock, BUSY);
  }

  private async load({ fence }: Held): Promise<OwnedLane> {
    const snapshot = await this.patiently(() => this.ports.store.loadLane(fence));
    if (snapshot === null) throw ownedBy(null);
    if (this.closedBecause !== null) {
      // This node is closing, but the database now assigns the lane to it: release the lane, so that the next owner
      // need not wait for the lease to expire.
      await this.ports.store.releaseLane(fence).catch(() => false);
      throw new BetweenOwners(this.closedBecause);
    }
    if (fence.instanceId !== this.ports.lease.instanceId) throw new BetweenOwners(STARTING_OVER);
    const context = this.ports.chains.get(fence.lane.chainId) as ServedChain;
    const lane = new OwnedLane(new Term(fence, this.termPorts), snapshot, context);
    const moment = { nowMs: this.ports.clock.monotonicMs(), now: this.ports.clock.now() };
    for (const tx of lane.unmined.values()) {
      keepPace(tx, moment, resubmitEveryMs(context.settings.resubmitIntervalMs, tx.status.state));
    }
    keepTime(lane, snapshot.allocated > 0, this.ports.clock);
    this.held.set(lane.key, lane);
    this.forgetLists();
    this.wanted.delete(lane.key);
    this.ports.telemetry.emit({
      type: "lane.resumed",
      lane: lane.lane,
      token: fence.token,
      tracking: snapshot.tracking.length,
      allocated: snapshot.allocated,
    });
    this.ports.onResumed(lane);
    return lane;
  }

  private drop(lane: OwnedLane, reason: string, how: Ending = "putOff") {
    lane.stop(how);
    if (this.held.get(lane.key) === lane) this.held.delete(lane.key);
    this.forgetLists();
    this.ports.telemetry.emit({ type: "lane.stopped", lane: lane.lane, reason });
  }

  private forgetLists() {
    this.listed = null;
    this.listedByChain.clear();
  }

  /** Writes one log line for all acquired lanes. */
  private summarise(results: readonly Acquisition["result"][]) {
    const acquired = results.filter((result) => result === "acquired").length;
    const takenOver = results.filter((result) => result === "takenOver").length;
    if (acquired + takenOver > 0) this.ports.telemetry.emit({ type: "lanes.taken", acquired, takenOver });
  }
}

function ownedBy(ownerUrl: string | null) {
  return notLeader(`${ownerUrl === null ? "another node" : `the node at ${ownerUrl}`} acts for this signer`, ownerUrl);
}

export interface Patience {
  readonly forMs: number;
  readonly pauseMs?: number;
  readonly signal?: AbortSignal;
  /** True for an error that may be over at the next try. */
  readonly mayPass?: (error: unknown) => boolean;
}

/** Retries work for a limited time after errors that may pass; by default, if the database does not answer. */
export async function askAgain<T>(work: () => Promise<T>, clock: Clock, patience: Patience): Promise<T> {
  const { forMs, pauseMs = 100, signal, mayPass = isSilent } = patience;
  const untilMs = clock.monotonicMs() + forMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!mayPass(error) || clock.monotonicMs() >= untilMs) throw error;
      await clock.sleep(pauseMs, signal);
    }
  }
}

function isSilent(error: unknown) {
  return error instanceof StoreUnavailable || error instanceof OutcomeUnknown;
}
