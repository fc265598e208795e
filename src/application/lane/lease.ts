/**
 * The lease. A node registers an instance and renews one heartbeat row; every lane it holds refers to that row. Three
 * things keep a stale node harmless, and only the first is about safety:
 *
 *  - the fence: each write proves (lane, instance, token) under a lock on the lane row, so whatever this process
 *    believes, the database refuses it after a takeover;
 *  - the deadline: measured on the monotonic clock from the moment a renewal *started*, less the skew allowance. It can
 *    only make a node stop sooner than the database would make it;
 *  - the session lock, if there is one: when it ends, other nodes assume that this process has ended. A node that
 *    loses it while alive sends nothing until a renewal that began afterwards has succeeded, and has recorded another
 *    lock, or none.
 *
 * An instance that missed its renewal ends for good. So does every instance if the database's history changed (a
 * restore, failover or replacement). The process continues as a new instance and claims its lanes again.
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
  /**
   * Called when the instance has ended: every lane it held is lost, and must be claimed again under the new instance.
   */
  onLost(): void;
  /** Called when this instance was declared dead or expired: its heartbeat was missing for too long. */
  onSilence(): void;
  /**
   * Called once, when every instance that existed at our start has shown that it is alive, or has ended: free lanes can
   * be claimed now.
   */
  onAcquainted(): void;
}

const RETRY_MS = 250;
const SWEEP_MS = 500;
/**
 * Interval between checks for other instances while there are none. A node that joins sends a hint; if the hint is
 * lost, the next check finds the node.
 */
const SWEEP_ALONE_MS = 1_000;
/** Extra wait in ms before the second of two checks, because a timer may fire slightly early and the check must not. */
const TIMER_SLACK_MS = 5;
/** Minimum interval between checks that are caused by unreachable peers, however many there are. */
const SUSPECT_EVERY_MS = 100;
/**
 * Maximum number of unanswered registrations that are remembered. The leases of older ones have expired, because the
 * store waits for a large part of a lease before it reports an unknown outcome.
 */
const MOST_UNANSWERED = 16;

export class Lease {
  private readonly ports;
  private readonly settings;
  private readonly events;
  private readonly stopping = new AbortController();
  private current: string | null = null;
  /**
   * Instances that this process may have registered: a registration without an answer may be in the database all the
   * same.
   */
  private unanswered: readonly string[] = [];
  /** Monotonic time at which our lease ends; null if there is none. */
  private deadlineMs: number | null = null;
  private loop: Promise<unknown> | null = null;
  /**
   * True after the database's history changed (a restore or failover): renewals stop, and a new instance is registered.
   */
  private startingOver = false;
  private readonly others;
  // Checks the other instances. If the database does not answer, no instance is declared dead; the next check repeats
  // the read.
  private readonly looking = new Activity(
    () => this.lookAround(),
    () => undefined,
  );
  /** Monotonic time of the last check of the other instances; null before the first. */
  private lookedAtMs: number | null = null;
  private cancelLook: (() => void) | null = null;
  private hurry = new AbortController();
  private isLeftBehind = false;
  /** Id of this process's last instance that was lost because its heartbeat was late. */
  private silentAs: string | null = null;
  private session: OwnSession | null = null;
  /** Our session lock as published to the other nodes, and since when. */
  private published: { readonly instanceId: string; readonly lock: LockSession | null; readonly atMs: number } | null =
    null;
  /**
   * Monotonic time at which this node lost a session lock that other nodes may know of. Null while no other node can
   * declare this instance dead because of a lost lock.
   */
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

  /** Id of the current instance. Throws before `start` has registered one. */
  get instanceId(): string {
    if (this.current === null) throw new Error("this node has not registered an instance yet");
    return this.current;
  }

  /** False after our own deadline: then nothing may be sent, whatever the database's state. */
  mayAct(): boolean {
    return this.deadlineMs !== null && this.nowMs() < this.deadlineMs;
  }

  /**
   * Like `mayAct`, but also false while other nodes may conclude from our lost session lock that this process is dead.
   * Sends then wait; all other actions are fenced anyway.
   */
  maySend(): boolean {
    return this.mayAct() && this.unsureSinceMs === null;
  }

  async start(): Promise<void> {
    this.extendFrom(await this.register());
    this.loop = Promise.all([this.renewing(), this.sweeping()]);
    this.look();
  }

  /**
   * Called when the database's history changed (a restore or failover): commits may have been lost, and other nodes may
   * get the same tokens again. Everything stops at once; this process continues as a new instance.
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

  /**
   * Graceful end: releases the lanes and retires the instance, so that no other node has to wait for its lease to
   * expire.
   */
  async stop(): Promise<void> {
    await this.abandon();
    if (this.current !== null) await this.ports.store.retireInstance(this.current);
  }

  /** Ends renewal without writing to the database, like a crash. */
  async abandon(): Promise<void> {
    this.stopping.abort();
    this.cancelLook?.();
    await this.loop;
    await this.publishing.settled();
    this.deadlineMs = null;
  }

  /** Registers a new instance. Returns the time at which the registration began, from which the deadline counts. */
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
      if (!provesNothingMade(error)) this.unanswered = [...this.unanswered, instanceId].slice(-MOST_UNANSWERED);
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

  /**
   * Called when the database accepted a registration, renewal or session lock of this instance. `startedMs`: when that
   * began. It proves that no node had declared this instance dead before.
   */
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

  /** Random retry pause, so that nodes that lost the database together do not reconnect in step. */
  private retryMs() {
    return RETRY_MS * (0.5 + this.ports.entropy.random() / 2);
  }

  /**
   * Checks the other instances often enough that a dead node's lanes are free half a second after its lease expired.
   */
  private async sweeping() {
    const sweepMs = () =>
      Math.min(this.others.areNone ? SWEEP_ALONE_MS : SWEEP_MS, this.settings.lease.renewIntervalMs);
    while (await this.pause(sweepMs())) {
      this.look();
      await this.looking.settled();
    }
  }

  /** Checks the other instances now; called regularly, and if a hint reports that one has ended. */
  look(): void {
    if (this.mayAct() && !this.stopping.signal.aborted) this.looking.kick();
  }

  /** A peer could not be reached and may have ended: checks all instances. */
  suspect(): void {
    const { lookedAtMs } = this;
    if (lookedAtMs === null || this.nowMs() - lookedAtMs >= SUSPECT_EVERY_MS) this.look();
  }

  private async pause(ms: number, hurry?: AbortSignal) {
    const { signal } = this.stopping;
    await this.ports.clock.sleep(ms, hurry === undefined ? signal : AbortSignal.any([signal, hurry])).catch(() => null);
    return !signal.aborted;
  }

  /**
   * Renews the lease. False if the database did not answer: then it is unknown whether the renewal succeeded, and the
   * deadline stays unchanged.
   */
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

  /**
   * The database's schema is newer than this release. Retried as long as the process lives, but reported once: only an
   * upgrade or another database helps.
   */
  private leftBehind({ message }: SchemaTooNew) {
    if (!this.isLeftBehind) this.alert("SCHEMA_TOO_NEW", message);
    this.isLeftBehind = true;
  }

  private async replaceInstance() {
    this.deadlineMs = null;
    this.ports.telemetry.emit({ type: "instance.lost", instanceId: this.instanceId });
    // Report each lost instance once, however many tries the next registration takes.
    if (!this.startingOver && this.silentAs !== this.current) this.events.onSilence();
    this.silentAs = this.current;
    const startedMs = await this.register();
    const message = "the database's schema is one that this version knows";
    if (this.isLeftBehind) this.ports.telemetry.emit({ type: "alert.resolved", code: "SCHEMA_TOO_NEW", message });
    this.isLeftBehind = false;
    this.startingOver = false;
    // Drop the lanes of the previous instance before anything may act again.
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

  /**
   * Starts a new database session for the lock if our published lock is gone, although the old session was not reported
   * as ended.
   */
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

  /**
   * Publishes the session lock that this node holds now, or that it holds none. Done once for each instance and after
   * every change.
   */
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
    // The other nodes cannot see our lock, so it is on another database server than theirs. A restart of their server
    // would end their locks but not our session, so this session must not be used to judge their locks.
    if (result === "unseen" && sessionLock.held === lock) this.session = null;
    this.renewed(startedMs);
    this.ports.telemetry.emit({ type: "instance.lock", state: lock === null ? "lost" : result });
  }

  private publishLater(error: unknown) {
    if (error instanceof HistoryChanged) this.historyChanged(error);
    if (!this.stopping.signal.aborted) this.ports.clock.after(this.retryMs(), () => this.publishing.kick());
  }
}

/** True if the store proved that nothing was written. After any other error a registration may or may not exist. */
function provesNothingMade(error: unknown) {
  return [StoreUnavailable, BatchRefused, HistoryChanged, SchemaTooNew].some((known) => error instanceof known);
}
