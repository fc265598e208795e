/**
 * Tenure. A node registers an instance and renews one heartbeat row; every lane it holds points at that row. Two things
 * keep a stale node harmless, and only the first is about safety:
 *
 *  - the fence: each write proves (lane, instance, token) under a lock on the lane row, so whatever this process
 *    believes, the database refuses it after a takeover;
 *  - the deadline: measured on the monotonic clock from the moment a renewal *started*, less the skew allowance. It can
 *    only make a node stop sooner than the database would make it.
 *
 * An instance that missed its renewal is over for good, and so is one whose database has another history now. The process
 * goes on as a new one and claims its lanes again.
 */
import type { AlertCode } from "../../domain/alerts.ts";
import type { Address } from "../../domain/lane.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Entropy } from "../../ports/entropy.ts";
import type { Failpoints } from "../../ports/failpoints.ts";
import { HistoryChanged } from "../../ports/lane-store.ts";
import { type InstanceRecord, type LeaseStore, SchemaTooNew } from "../../ports/lease-store.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import type { NodeSettings } from "../settings.ts";
import { Activity } from "./activity.ts";

export interface LeasePorts {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly telemetry: Telemetry;
  readonly failpoint: Failpoints;
  /** What this node can serve, as it is now. */
  readonly serving: () => { readonly signers: readonly Address[]; readonly chains: readonly number[] };
}

export interface LeaseEvents {
  /** Everybody who is registered, as just read. */
  onInstances(instances: readonly InstanceRecord[]): Promise<void>;
  /** The instance is over: every lane it held is lost, and must be claimed again under the new one. */
  onLost(): void;
  /** Some instance has ended, declared dead or by its own word: its lanes are free. */
  onFreed(): void;
}

const RETRY_MS = 250;
const SWEEP_MS = 500;

export class Lease {
  private readonly ports: LeasePorts;
  private readonly settings: NodeSettings;
  private readonly events: LeaseEvents;
  private readonly stopping = new AbortController();
  private current: string | null = null;
  private deadlineMs = Number.NEGATIVE_INFINITY;
  private loop: Promise<unknown> | null = null;
  /** The database's history changed: nothing is renewed any more, a new instance is registered. */
  private startingOver = false;
  // A database that does not answer frees nobody; the next look asks again.
  private readonly looking = new Activity(
    () => this.declareDead(),
    () => undefined,
  );
  private hurry = new AbortController();
  private isLeftBehind = false;
  /** Counters of other instances as last seen change, and when, on our own clock. */
  private readonly watched = new Map<string, { readonly counter: number; readonly sinceMs: number }>();
  /** Instances whose end has been noticed. */
  private ended: ReadonlySet<string> = new Set();

  constructor(ports: LeasePorts, settings: NodeSettings, events: LeaseEvents) {
    this.ports = ports;
    this.settings = settings;
    this.events = events;
  }

  /** Throws before `start` has registered one. */
  get instanceId(): string {
    if (this.current === null) throw new Error("the node has no instance yet");
    return this.current;
  }

  /** False past our own deadline: no more sends, whatever the database thinks. */
  mayAct(): boolean {
    return this.ports.clock.monotonicMs() < this.deadlineMs;
  }

  async start(): Promise<void> {
    this.extendFrom(await this.register());
    this.loop = Promise.all([this.renewing(), this.sweeping()]);
  }

  /**
   * Commits may have been lost, and others may be given the same tokens again. Everything stops at once; what this
   * process can do next, it does as a new instance of the history that there is now.
   */
  historyChanged(error: HistoryChanged): void {
    if (this.startingOver || this.stopping.signal.aborted) return;
    this.startingOver = true;
    this.deadlineMs = Number.NEGATIVE_INFINITY;
    const detail = error.message;
    this.ports.telemetry.emit({ type: "store.historyChanged", detail });
    this.alert("DATABASE_HISTORY_CHANGED", detail);
    this.events.onLost();
    this.hurry.abort();
  }

  /** Graceful end: lanes released and the instance retired, so that nobody has to wait for an expiry. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.loop;
    this.deadlineMs = Number.NEGATIVE_INFINITY;
    if (this.current !== null) await this.ports.store.retireInstance(this.current);
  }

  /** Ends renewal without a word to the database; what a crash looks like from outside. */
  async abandon(): Promise<void> {
    this.stopping.abort();
    await this.loop;
    this.deadlineMs = Number.NEGATIVE_INFINITY;
  }

  /** Returns when it began: what the deadline counts from. */
  private async register(replaces: { readonly replaces?: string } = {}): Promise<number> {
    const { nodeId, url, version, mode, lease } = this.settings;
    const instanceId = this.ports.entropy.uuid();
    const startedMs = this.ports.clock.monotonicMs();
    const { epoch, begun, mayHaveLost } = await this.ports.store.registerInstance({
      ...this.ports.serving(),
      instanceId,
      nodeId,
      url,
      version,
      mode,
      leaseDurationMs: lease.durationMs,
      ...replaces,
    });
    this.current = instanceId;
    this.ports.telemetry.emit({ type: "instance.registered", instanceId, nodeId });
    if (begun) this.ports.telemetry.emit({ type: "feed.epochBegun", epoch, mayHaveLost });
    if (begun && mayHaveLost) this.alert("COMMITS_MAY_BE_LOST", `epoch ${epoch}: every signer waits for an operator`);
    return startedMs;
  }

  private extendFrom(startedMs: number): void {
    this.deadlineMs = startedMs + this.settings.lease.durationMs - this.settings.lease.clockSkewMs;
  }

  private async renewing(): Promise<void> {
    const { renewIntervalMs } = this.settings.lease;
    let waitMs = renewIntervalMs;
    while (await this.pause(waitMs, this.hurry.signal)) {
      if (this.hurry.signal.aborted) this.hurry = new AbortController();
      waitMs = (await this.renew()) ? renewIntervalMs : Math.min(this.retryMs(), renewIntervalMs);
    }
  }

  /** Nodes that lost the database together do not come back to it in step. */
  private retryMs(): number {
    return RETRY_MS * (0.5 + this.ports.entropy.random() / 2);
  }

  /** Often enough that a dead node's lanes are free half a second after its lease has run out. */
  private async sweeping(): Promise<void> {
    while (await this.pause(Math.min(SWEEP_MS, this.settings.lease.renewIntervalMs))) {
      this.look();
      await this.looking.settled();
    }
  }

  /** Looks at the others now: somebody says that one of them has ended. */
  look(): void {
    if (this.mayAct()) this.looking.kick();
  }

  private async pause(ms: number, hurry?: AbortSignal): Promise<boolean> {
    const { signal } = this.stopping;
    await this.ports.clock.sleep(ms, hurry === undefined ? signal : AbortSignal.any([signal, hurry])).catch(() => null);
    return !signal.aborted;
  }

  /** False: the database did not answer; nothing is known, so only the deadline runs on. */
  private async renew(): Promise<boolean> {
    const startedMs = this.ports.clock.monotonicMs();
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

  /** Tried again for as long as the process lives, told once: only an upgrade ends it. */
  private leftBehind({ message }: SchemaTooNew): void {
    if (!this.isLeftBehind) this.alert("SCHEMA_TOO_NEW", message);
    this.isLeftBehind = true;
  }

  private async replaceInstance(): Promise<void> {
    this.deadlineMs = Number.NEGATIVE_INFINITY;
    this.ports.telemetry.emit({ type: "instance.lost", instanceId: this.instanceId });
    const startedMs = await this.register({ replaces: this.instanceId });
    this.startingOver = false;
    // What was held under the instance before is dropped before anything may act again.
    this.events.onLost();
    this.extendFrom(startedMs);
  }

  private alert(code: AlertCode, message: string): void {
    this.ports.telemetry.emit({ type: "alert", severity: "CRITICAL", code, message });
  }

  /** Declares others dead: past by the database's clock, or standing still for duration + skew on ours. */
  private async declareDead(): Promise<void> {
    // A counter has stood still from the end of the read that first showed it to the start of this one. Counted any
    // wider, a pause of our own between asking and hearing would look like the death of everybody else.
    const askedMs = this.ports.clock.monotonicMs();
    const instances = await this.ports.store.instances();
    const heardMs = this.ports.clock.monotonicMs();
    await this.events.onInstances(instances);
    const patienceMs = this.settings.lease.durationMs + this.settings.lease.clockSkewMs;
    this.noticeEnded(instances);
    for (const instance of instances) {
      if (instance.dead || instance.instanceId === this.current) continue;
      const seen = this.watched.get(instance.instanceId);
      const stoodStill = seen?.counter === instance.counter && askedMs - seen.sinceMs >= patienceMs;
      if (seen?.counter !== instance.counter) {
        this.watched.set(instance.instanceId, { counter: instance.counter, sinceMs: heardMs });
      }
      if (!instance.expired && !stoodStill) continue;
      const evidence = instance.expired ? "expired" : "stood-still";
      if (!(await this.ports.store.declareDead(instance.instanceId, instance.counter, evidence))) continue;
      this.ports.telemetry.emit({ type: "instance.declaredDead", instanceId: instance.instanceId, evidence });
      this.events.onFreed();
    }
  }

  /** A graceful end, or one that another node declared: its lanes are free too, and nobody else may be there to take them. */
  private noticeEnded(instances: readonly InstanceRecord[]): void {
    const alive = new Set(instances.filter(({ dead }) => !dead).map(({ instanceId }) => instanceId));
    const dead = instances.filter((instance) => instance.dead).map(({ instanceId }) => instanceId);
    const gone = [...this.watched.keys()].filter((instanceId) => !alive.has(instanceId));
    const isNews = gone.length > 0 || dead.some((instanceId) => !this.ended.has(instanceId));
    for (const instanceId of gone) this.watched.delete(instanceId);
    this.ended = new Set(dead);
    if (isNews) this.events.onFreed();
  }
}
