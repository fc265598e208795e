/**
 * The lease. A node registers an instance and renews one heartbeat row; every lane it holds refers to that row. Three
 * things keep a stale node harmless, and only the first is about safety:
 *
 *  - the fence: each write proves (lane, instance, token) under a lock on the lane row, so whatever this process
 *    believes, the database refuses it after a takeover;
 *  - the deadline: measured on the monotonic clock from the moment a renewal *started*, less the skew allowance. It can
 *    only make a node stop sooner than the database would make it;
 *  - the session lock, if there is one: others take its end for ours. A node that loses it while alive sends nothing
 *    until a renewal that began afterwards has succeeded, and has recorded another lock, or none.
 *
 * An instance that missed its renewal is over for good, and so is one whose database has another history now. The
 * process goes on as a new one and claims its lanes again.
 */

import { LOOKS_APART_MS, type OwnSession } from "../../domain/chain/witness.ts";
import type { AlertCode } from "../../domain/troubles/table.ts";
import { BatchRefused, HistoryChanged, StoreUnavailable } from "../../ports/lane-store.ts";
import { type InstanceRegistration, type LeaseStore, SchemaTooNew } from "../../ports/lease-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { LockSession } from "../../ports/session-lock.ts";
import type { NodeSettings } from "../settings.ts";
import { Activity } from "./activity.ts";
import { OtherInstances, type OtherInstancesEvents } from "./other-instances.ts";

interface LeasePorts extends Pick<Ports, "clock" | "entropy" | "telemetry" | "failpoint" | "sessionLock"> {
  readonly store: LeaseStore;
  readonly peers: Pick<Ports["peers"], "introduce">;
  /** Chains and signers that this node can serve now. */
  readonly serving: () => Pick<InstanceRegistration, "signers" | "chains" | "standsBack" | "keysAway">;
}

export interface LeaseEvents extends OtherInstancesEvents {
  /** The instance is over: every lane it held is lost, and must be claimed again under the new one. */
  onLost(): void;
  /** This instance was declared dead, or expired: its heartbeat was missing for too long. */
  onSilence(): void;
  /** All instances that were there when this node came are alive or over: free lanes can be claimed now. Once. */
  onAcquainted(): void;
}

const RETRY_MS = 250;
const SWEEP_MS = 500;
/** While no other node is there. One that joins says so, and is found at the next look otherwise. */
const SWEEP_ALONE_MS = 1_000;
/** A timer may be early by a fraction; two looks must not be. */
const TIMER_SLACK_MS = 5;
/** However many peers are found unreachable, others are not looked at more often for that. */
const SUSPECT_EVERY_MS = 100;
/**
 * The leases of earlier instances have expired by now: the store waits for a good part of one before it reports an
 * unknown outcome.
 */
const MOST_UNHEARD = 16;

export class Lease {
  private readonly ports;
  private readonly settings;
  private readonly events;
  private readonly stopping = new AbortController();
  private current: string | null = null;
  /**
   * Instances that this process may have become: a registration without an answer may be in the database all the same.
   */
  private unanswered: readonly string[] = [];
  /** Monotonic; null: no lease. */
  private deadlineMs: number | null = null;
  private loop: Promise<unknown> | null = null;
  /** The database's history changed: nothing is renewed any more, a new instance is registered. */
  private startingOver = false;
  private readonly others;
  // A database that does not answer declares no instance dead; the next look asks again.
  private readonly looking = new Activity(
    () => this.lookAround(),
    () => undefined,
  );
  /** Monotonic; null: not yet. */
  private lookedAtMs: number | null = null;
  private cancelLook: (() => void) | null = null;
  private hurry = new AbortController();
  private isLeftBehind = false;
  /** The last instance that was lost by silence. */
  private silentAs: string | null = null;
  private session: OwnSession | null = null;
  /** Our session lock as the others know it, and since when. */
  private published: { readonly instanceId: string; readonly lock: LockSession | null; readonly atMs: number } | null =
    null;
  /** When a lock was lost that others may know of; null: no other node can take us for dead by it. */
  private unsureSinceMs: number | null = null;
  private readonly publishing = new Activity(
    () => this.publishLock(),
    (error) => this.publishLater(error),
  );

  constructor(ports: LeasePorts, settings: NodeSettings, events: LeaseEvents) {
    this.ports = ports;
    this.settings = settings;
    this.events = events;
    this.others = new OtherInstances({ ...ports, clockSkewMs: settings.lease.clockSkewMs }, events);
    ports.sessionLock.onChange((held) => this.lockChanged(held));
  }

  private nowMs() {
    return this.ports.clock.monotonicMs();
  }

  /** Throws before `start` has registered one. */
  get instanceId(): string {
    if (this.current === null) throw new Error("the node has no instance yet");
    return this.current;
  }

  /** False past our own deadline: no more sends, whatever the database thinks. */
  mayAct(): boolean {
    return this.deadlineMs !== null && this.nowMs() < this.deadlineMs;
  }

  /** False too while others may have taken the end of our session lock for ours: sends wait, all else is fenced anyway. */
  maySend(): boolean {
    return this.mayAct() && this.unsureSinceMs === null;
  }

  async start(): Promise<void> {
    this.extendFrom(await this.register());
    this.loop = Promise.all([this.renewing(), this.sweeping()]);
    this.look();
  }

  /**
   * Commits may have been lost, and others may be given the same tokens again. Everything stops at once; what this
   * process can do next, it does as a new instance of the history that there is now.
   */
  historyChanged(error: HistoryChanged): void {
    if (this.startingOver || this.stopping.signal.aborted) return;
    this.startingOver = true;
    this.deadlineMs = null;
    const detail = error.message;
    this.ports.telemetry.emit({ type: "store.historyChanged", detail });
    this.alert("DATABASE_HISTORY_CHANGED", detail);
    this.events.onLost();
    this.hurry.abort();
  }

  /** Graceful end: lanes released and the instance retired, so that no other node has to wait for an expiry. */
  async stop(): Promise<void> {
    await this.abandon();
    if (this.current !== null) await this.ports.store.retireInstance(this.current);
  }

  /** Ends renewal without a word to the database; what a crash looks like from outside. */
  async abandon(): Promise<void> {
    this.stopping.abort();
    this.cancelLook?.();
    await this.loop;
    await this.publishing.settled();
    this.deadlineMs = null;
  }

  /** Returns when it began: what the deadline counts from. */
  private async register() {
    const { nodeId, url, version, mode, lease } = this.settings;
    const instanceId = this.ports.entropy.uuid();
    const replaces = this.current === null ? this.unanswered : [this.current, ...this.unanswered];
    const startedMs = this.nowMs();
    const registration = {
      ...this.ports.serving(),
      ...this.ports.peers.introduce(instanceId, url),
      instanceId,
      nodeId,
      url,
      version,
      mode,
      leaseDurationMs: lease.durationMs,
      ...(replaces.length === 0 ? {} : { replaces }),
    };
    const { epoch, begun, mayHaveLost } = await this.ports.store.registerInstance(registration).catch((error) => {
      if (!provesNothingMade(error)) this.unanswered = [...this.unanswered, instanceId].slice(-MOST_UNHEARD);
      throw error;
    });
    this.current = instanceId;
    this.unanswered = [];
    this.publishing.kick();
    this.ports.telemetry.emit({ type: "instance.registered", instanceId, nodeId });
    if (begun) this.ports.telemetry.emit({ type: "feed.epochBegun", epoch, mayHaveLost });
    if (begun && mayHaveLost) this.alert("COMMITS_MAY_BE_LOST", `epoch ${epoch}: every signer waits for an operator`);
    return startedMs;
  }

  private extendFrom(startedMs: number) {
    this.deadlineMs = startedMs + this.settings.lease.durationMs - this.settings.lease.clockSkewMs;
    this.renewed(startedMs);
  }

  /** The database took a sign of life that began then: a node that took us for dead before has not declared it. */
  private renewed(startedMs: number) {
    if (this.unsureSinceMs !== null && startedMs >= this.unsureSinceMs) this.unsureSinceMs = null;
  }

  private async renewing() {
    const { renewIntervalMs } = this.settings.lease;
    let waitMs = renewIntervalMs;
    while (await this.pause(waitMs, this.hurry.signal)) {
      if (this.hurry.signal.aborted) this.hurry = new AbortController();
      waitMs = (await this.renew()) ? renewIntervalMs : Math.min(this.retryMs(), renewIntervalMs);
    }
  }

  /** Nodes that lost the database together do not come back to it in step. */
  private retryMs() {
    return RETRY_MS * (0.5 + this.ports.entropy.random() / 2);
  }

  /** Often enough that a dead node's lanes are free half a second after its lease has run out. */
  private async sweeping() {
    const sweepMs = () =>
      Math.min(this.others.areNone ? SWEEP_ALONE_MS : SWEEP_MS, this.settings.lease.renewIntervalMs);
    while (await this.pause(sweepMs())) {
      this.look();
      await this.looking.settled();
    }
  }

  /** Checks the others now: a hint says that one of them has ended. */
  look(): void {
    if (this.mayAct() && !this.stopping.signal.aborted) this.looking.kick();
  }

  /** Another instance could not be reached and may have ended: looks at all of them. */
  suspect(): void {
    const { lookedAtMs } = this;
    if (lookedAtMs === null || this.nowMs() - lookedAtMs >= SUSPECT_EVERY_MS) this.look();
  }

  private async pause(ms: number, hurry?: AbortSignal) {
    const { signal } = this.stopping;
    await this.ports.clock.sleep(ms, hurry === undefined ? signal : AbortSignal.any([signal, hurry])).catch(() => null);
    return !signal.aborted;
  }

  /** False: the database did not answer; nothing is known, so only the deadline runs on. */
  private async renew() {
    const startedMs = this.nowMs();
    try {
      if (
        !this.startingOver &&
        (await this.ports.store.renewInstance(this.instanceId, this.settings.lease.durationMs))
      ) {
        this.extendFrom(startedMs);
        await this.ports.failpoint("lease.renewed");
        return true;
      }
      await this.replaceInstance();
      return true;
    } catch (error) {
      if (error instanceof HistoryChanged) this.historyChanged(error);
      if (error instanceof SchemaTooNew) this.leftBehind(error);
      return false;
    }
  }

  /** Retried as long as the process lives, reported once: only an upgrade ends it, or another database. */
  private leftBehind({ message }: SchemaTooNew) {
    if (!this.isLeftBehind) this.alert("SCHEMA_TOO_NEW", message);
    this.isLeftBehind = true;
  }

  private async replaceInstance() {
    this.deadlineMs = null;
    this.ports.telemetry.emit({ type: "instance.lost", instanceId: this.instanceId });
    // Once for each, however often it takes to register the next.
    if (!this.startingOver && this.silentAs !== this.current) this.events.onSilence();
    this.silentAs = this.current;
    const startedMs = await this.register();
    const message = "the database's schema is one that this version knows";
    if (this.isLeftBehind) this.ports.telemetry.emit({ type: "alert.resolved", code: "SCHEMA_TOO_NEW", message });
    this.isLeftBehind = false;
    this.startingOver = false;
    // Lanes of the instance before are dropped before anything may act again.
    this.events.onLost();
    this.extendFrom(startedMs);
  }

  private alert(code: AlertCode, message: string) {
    this.ports.telemetry.emit({ type: "alert", severity: "CRITICAL", code, message });
  }

  private async lookAround() {
    const wasAcquainted = this.others.acquainted;
    this.lookedAtMs = this.nowMs();
    const { again, self } = await this.others.look({ instanceId: this.current, session: this.session });
    if (self?.lock === "gone") this.missOwnLock();
    if (this.others.acquainted && !wasAcquainted) this.events.onAcquainted();
    if (again === null || this.stopping.signal.aborted) return;
    const waitMs = again === "soon" ? LOOKS_APART_MS : Math.max(0, again - this.nowMs());
    this.cancelLook ??= this.ports.clock.after(waitMs + TIMER_SLACK_MS, () => {
      this.cancelLook = null;
      this.look();
    });
  }

  /** The published lock is gone, and we were not notified that our session has ended. */
  private missOwnLock() {
    const { sessionLock } = this.ports;
    const { published } = this;
    if (published === null || published.lock === null || published.instanceId !== this.current) return;
    if (published.lock === sessionLock.held && published.atMs < (this.lookedAtMs ?? published.atMs))
      sessionLock.startOver();
  }

  private lockChanged(held: LockSession | null) {
    const sinceMs = this.nowMs();
    this.session = held === null ? null : { ...held, sinceMs };
    if (held === null) this.unsureSinceMs ??= sinceMs;
    this.publishing.kick();
    if (held !== null) this.look();
  }

  /** Publishes the lock that is held now, or none: as soon as it changes, and once for each instance. */
  private async publishLock() {
    const { sessionLock, store, clock } = this.ports;
    const { current: instanceId, published } = this;
    const lock = sessionLock.held;
    const isKnown = published?.instanceId === instanceId ? published.lock === lock : lock === null;
    if (instanceId === null || this.stopping.signal.aborted) return;
    if (isKnown && this.unsureSinceMs === null) return;
    const startedMs = clock.monotonicMs();
    const result = await store.publishLock(instanceId, lock);
    if (result === "over") return this.hurry.abort();
    this.published = { instanceId, lock, atMs: clock.monotonicMs() };
    // On another server than the one that the others look at: a restart of theirs would not end it, so it is witness of nothing.
    if (result === "unseen" && sessionLock.held === lock) this.session = null;
    this.renewed(startedMs);
    this.ports.telemetry.emit({ type: "instance.lock", state: lock === null ? "lost" : result });
  }

  private publishLater(error: unknown) {
    if (error instanceof HistoryChanged) this.historyChanged(error);
    if (!this.stopping.signal.aborted) this.ports.clock.after(this.retryMs(), () => this.publishing.kick());
  }
}

/** The store said so. Any other error leaves open what became of a registration. */
function provesNothingMade(error: unknown) {
  return [StoreUnavailable, BatchRefused, HistoryChanged, SchemaTooNew].some((known) => error instanceof known);
}
