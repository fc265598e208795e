/**
 * The lanes this node owns. Acquires on demand and at start, resumes each from the database alone, and lets go of what
 * was fenced. A lane whose memory may differ from the database is dropped and read again under the same term.
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

/** The chain's part in resuming a lane. */
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
    /** Placement gives this lane to us, or to no known member. */
    isOurs(lane: Lane): boolean;
    /** Those of the lanes, none of them ours, that no node has taken for so long that this one should. */
    unownedAmong(lanes: readonly Lane[]): Promise<readonly Lane[]>;
    /** This node gave the lane away a moment ago, to a node that is live now. */
    isForAnother(lane: Lane): Promise<boolean>;
    /** The answer to a create if this node cannot act for the lane. */
    refusal(lane: Lane): Promise<FencepostError>;
  };
  /** Starts the lane's work once it is resumed. */
  readonly onResumed: (lane: OwnedLane) => void;
}

type Held = Extract<Acquisition, { fence: Fence }>;

const RESUME_AT_ONCE = 8;
/** Half of a router's wait: a caller gets the answer while there is time to ask elsewhere. */
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
  /** The values of `held`, until it changes: they are gone through many times a second, and ten thousand are not copied each time. */
  private listed: readonly OwnedLane[] | null = null;
  private readonly listedByChain = new Map<number, readonly OwnedLane[]>();
  private readonly acquiring = new Map<LaneKey, Promise<OwnedLane>>();
  /** Lanes to be acquired in the background: reloaded ones, and those whose acquisition failed on the database. */
  private readonly wanted = new Map<LaneKey, Lane>();
  /** Lanes being handed over: no longer ours, and without another owner yet. */
  private readonly leaving = new Set<LaneKey>();
  private readonly addresses: ReadonlySet<Address>;
  private closedBecause: string | null = null;
  /** A claim of everything free did not go through: it must be tried again. */
  claimOwed = false;
  /** How many are at work on lanes that are wanted back. */
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

  /** The lane under our own term, acquired if it is free. Throws UNKNOWN_SIGNER, NOT_LEADER or UNAVAILABLE. */
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

  /** Claims what is free among all lanes this node can serve, and resumes it. */
  async claimAll(): Promise<void> {
    const { store, chains, lease } = this.ports;
    // Asked once a second: ten thousand lanes are not gone through to find that all of them are held.
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
    // An acquisition under way may have asked before the lane was freed: then no node has it, and no other claim is on its way.
    this.claimOwed = free.length < missing.length;
    await sideBySide(claimed, RESUME_AT_ONCE, async (acquisition) => {
      const { lane } = acquisition.fence;
      // A create that came meanwhile may have resumed it already; two readings of one lane would act twice.
      if (this.held.has(laneKey(lane))) return;
      await this.acquire(lane, async () => acquisition).catch(() => undefined);
    });
    this.summarise(claimed.map(({ result }) => result));
  }

  /** Our lanes, and unowned ones. If the database does not answer, the next claim asks again. */
  private async claimable(lanes: readonly Lane[]): Promise<readonly Lane[]> {
    const { placement } = this.ports;
    const ours = new Set(lanes.filter((lane) => placement.isOurs(lane)));
    const unowned = await placement.unownedAmong(lanes.filter((lane) => !ours.has(lane))).catch(() => []);
    return [...ours, ...unowned];
  }

  /** Reads the lane again from the database: now, or as soon as that answers. */
  reload({ term }: Pick<OwnedLane, "term">, reason: string): void {
    const lane = this.held.get(laneKey(term.fence.lane));
    if (lane?.term !== term) return;
    this.drop(lane, reason);
    if (this.closedBecause === null) this.wanted.set(lane.key, lane.lane);
  }

  holds(lane: Lane): boolean {
    return this.held.has(laneKey(lane));
  }

  /** Null: this node does not hold it. */
  find(lane: Lane): OwnedLane | null {
    return this.held.get(laneKey(lane)) ?? null;
  }

  /**
   * Releases a lane so that another node can have it at once: nothing new begins, and open writes commit first. Sends
   * in flight are not waited for: their claims show the next owner that they may have left. False: it is still ours.
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
      // Ours still, as long as this instance lives, and no other node can take it: it must be had until it can be released.
      if (this.closedBecause === null) this.wanted.set(lane.key, lane.lane);
      return false;
    } finally {
      this.leaving.delete(lane.key);
    }
  }

  /**
   * Acknowledged commits update the lane's memory. A lane that was released meanwhile does not need it: it is reloaded
   * only after the last of its writes is over.
   */
  fold({ lane, token, changes }: LaneChanges): void {
    const owned = this.held.get(laneKey(lane));
    if (owned === undefined || owned.fence.token !== token) return;
    try {
      owned.fold(changes);
    } catch (error) {
      this.reload(owned, `memory and database differ: ${messageOf(error)}`);
    }
  }

  /** A write of ours was refused: another node holds the lane. */
  lose(fence: Fence, write: string): void {
    const lane = this.held.get(laneKey(fence.lane));
    noteFenced(this.ports.telemetry, fence, write, "database");
    if (lane?.fence.token === fence.token) this.drop(lane, "fenced", "lost");
  }

  /** A write was not made. Where its term is over by now, it was too late, and would be refused. */
  giveUp(fence: Fence, write: string): void {
    const { lease, telemetry } = this.ports;
    if (lease.mayAct() && lease.instanceId === fence.instanceId) return;
    noteFenced(telemetry, fence, write, "deadline");
  }

  /** The instance is over, or about to be, and every term with it. */
  dropAll(reason: string, how: Ending): void {
    for (const lane of this.all()) this.drop(lane, reason, how);
    this.wanted.clear();
  }

  /** No more lanes are taken; those held stay until they are dropped. */
  close(reason: string): void {
    this.closedBecause = reason;
  }

  /**
   * Tries the wanted lanes, a few at a time. Called on a beat; a database that is away is asked again on the next one.
   * A lane that hangs on a row lock delays no other.
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
   * Nodes that have not noticed that this node gave a lane away still ask it for that lane. Taking the lane back at
   * once would only move it twice. A wanted lane is not left to another node: it may be ours in the database, and then
   * no other node can take it.
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

  /** One attempt at a time per lane; callers that ask meanwhile share it. */
  private acquire(lane: Lane, obtain: () => Promise<Acquisition>): Promise<OwnedLane> {
    const key = laneKey(lane);
    const underWay = this.acquiring.get(key);
    if (underWay !== undefined) return underWay;
    const attempt = this.resume(lane, obtain)
      .catch((error: FencepostError) => {
        // The database may say that the lane is ours, and then no other node takes it: it must be had in the end.
        if (error.code === "UNAVAILABLE" && this.closedBecause === null) this.wanted.set(key, lane);
        throw error;
      })
      .finally(() => this.acquiring.delete(key));
    this.acquiring.set(key, attempt);
    return attempt;
  }

  private async resume(lane: Lane, obtain: () => Promise<Acquisition>) {
    try {
      // Writes of an earlier reading of this lane must be over before it is read again.
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

  /** A lock, idle or statement timeout has changed nothing: worth another attempt before the caller gets an error. */
  private patiently<T>(work: () => Promise<T>) {
    return askAgain(work, this.ports.clock, BUSY);
  }

  private async load({ fence }: Held): Promise<OwnedLane> {
    const snapshot = await this.patiently(() => this.ports.store.loadLane(fence));
    if (snapshot === null) throw ownedBy(null);
    if (this.closedBecause !== null) {
      // Ours by now in the database, and never to be worked on: the next owner should not have to wait for the lease.
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

  /** One log line, however many lanes were taken. */
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
  /** Conditions that may have ended by the next time. */
  readonly mayPass?: (error: unknown) => boolean;
}

/** A database that was reached and is slow at this moment is no reason to give up: asked again, for so long. */
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
