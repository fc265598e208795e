/**
 * Webhooks of this node: takes subscribers that no live instance delivers for, runs their deliveries, and stores their
 * progress together, a few times a second.
 *
 * Reads: subscribers and the feed. Writes: progress, each under its term, which the database compares. A crash leaves
 * the terms of a dead instance; another node takes them over and continues from the stored progress.
 */

import type { Member } from "../../domain/cluster/placement.ts";
import { affinity } from "../../domain/lane.ts";
import type { SubscriberTrouble } from "../../domain/troubles/subscribers.ts";
import { bounded } from "../../ports/clock.ts";
import type { Ports } from "../../ports/ports.ts";
import type { SubscriberRecord, SubscriberStore } from "../../ports/subscriber-store.ts";
import type { WebhookSender } from "../../ports/webhook-sender.ts";
import { Activity } from "../lane/activity.ts";
import { OutcomeFeed } from "./outcome-feed.ts";
import { type RunPorts, SubscriberRun } from "./subscriber-run.ts";
import { SubscriberWatch } from "./subscriber-watch.ts";

interface DeliveriesPorts extends Pick<Ports, "clock" | "entropy" | "telemetry"> {
  readonly store: SubscriberStore & Pick<Ports["store"], "feed" | "costsOf">;
  readonly wakeUps: Pick<Ports["wakeUps"], "isListening">;
  readonly sender: WebhookSender;
  readonly nodeId: string;
  readonly instanceId: () => string;
  /** True while this instance may act for others. */
  readonly mayAct: () => boolean;
  readonly members: () => readonly Member[];
  readonly onFailed: (error: unknown) => void;
}

/** Interval between two reads of the subscribers, and while hints arrive of every change. */
const LOOK_EVERY_MS = 1_000;
const LOOK_SELDOM_MS = 10_000;
/** Pause between two writes of progress, and between two reads of a feed that grows. */
const STORE_EVERY_MS = 200;
/** Pause before a write of failures only: without it, dead receivers would cost the database more than the others. */
const STORE_FAILURES_MS = 1_000;
const READ_EVERY_MS = 25;
/** Largest number of requests of this node on their way. A subscriber with few of them may have one more anyway. */
const MOST_UNDER_WAY = 1_024;
/** How long a stop waits for deliveries under way. */
const LAST_DELIVERIES_MS = 1_000;
/** A subscriber that another node should take is taken here if it is still free after this time. */
const PATIENCE_MS = 2_000;

export class Deliveries {
  private readonly ports;
  private readonly runs = new Map<string, SubscriberRun>();
  private readonly runPorts: Omit<RunPorts, "mayAct">;
  private readonly changed = new Set<SubscriberRun>();
  private readonly freeSinceMs = new Map<string, number>();
  private readonly looking;
  private readonly storing;
  private readonly watch;
  private known: readonly SubscriberRecord[] = [];
  private lookAtMs = 0;
  private isClosing = false;
  private cancelRead: (() => void) | null = null;
  private cancelStore: () => void = () => undefined;
  /** When the next write of progress begins; null if none is due. */
  private storeAtMs: number | null = null;

  constructor(ports: DeliveriesPorts) {
    this.ports = ports;
    this.looking = new Activity(() => this.lookAround(), ports.onFailed);
    this.storing = new Activity(() => this.store(), ports.onFailed);
    this.watch = new SubscriberWatch(ports);
    const { clock, entropy, telemetry, sender } = ports;
    this.runPorts = {
      ...{ clock, entropy, telemetry, sender },
      feed: new OutcomeFeed(ports.store),
      hasRoom: () => this.underWay < MOST_UNDER_WAY,
      onProgress: (run, failed) => this.storeSoon(run, failed ? STORE_FAILURES_MS : STORE_EVERY_MS),
    };
  }

  /** Largest backlog of a subscriber of this node, and the largest age of the first outcome of one. */
  get lag() {
    const own = this.known.filter(({ subscriberId }) => this.runs.has(subscriberId));
    const ages = own.map(({ behindSince, readAt }) => readAt.getTime() - (behindSince ?? readAt).getTime());
    return { outcomes: Math.max(0, ...own.map(({ behind }) => behind)), seconds: Math.max(0, ...ages) / 1_000 };
  }

  get troubles(): readonly SubscriberTrouble[] {
    return this.watch.found;
  }

  /** Called on the slow beat. */
  look(): void {
    const { clock, wakeUps } = this.ports;
    const nowMs = clock.monotonicMs();
    if (this.isClosing || nowMs < this.lookAtMs) return;
    const seldom = wakeUps.isListening && this.freeSinceMs.size === 0;
    this.lookAtMs = nowMs + (seldom ? LOOK_SELDOM_MS : LOOK_EVERY_MS);
    this.lookNow();
  }

  /** A subscriber was changed, or an instance ended. */
  lookNow(): void {
    if (this.isClosing) return;
    this.looking.kick();
    this.feedGrew();
  }

  /** The feed grew, here or on another node. */
  feedGrew(): void {
    if (this.runs.size === 0) return;
    this.cancelRead ??= this.ports.clock.after(READ_EVERY_MS, () => {
      this.cancelRead = null;
      this.runPorts.feed.grew();
      for (const run of this.runs.values()) run.grew();
    });
  }

  /** Ends all runs without storing anything: the instance is over. */
  dropAll(): void {
    for (const run of this.runs.values()) run.stop();
    this.runs.clear();
    this.changed.clear();
  }

  /** Waits a moment for deliveries under way, and stores the progress, so that the next node repeats little. */
  async close(): Promise<void> {
    const { clock } = this.ports;
    this.isClosing = true;
    this.cancelRead?.();
    await this.looking.settled();
    const drained = Promise.all([...this.runs.values()].map((run) => run.drain()));
    await bounded(clock, drained, clock.monotonicMs() + LAST_DELIVERIES_MS);
    await this.storing.now();
    this.cancelStore();
    this.dropAll();
  }

  async settled(): Promise<void> {
    await this.looking.settled();
    await this.storing.settled();
  }

  private get underWay() {
    let sum = 0;
    for (const run of this.runs.values()) sum += run.inFlight;
    return sum;
  }

  private async lookAround() {
    const { store, mayAct, instanceId } = this.ports;
    if (!mayAct()) return;
    const self = instanceId();
    this.known = await store.subscribers();
    this.watch.look(this.known);
    const byId = new Map(this.known.map((each) => [each.subscriberId, each]));
    for (const [id, run] of this.runs) {
      const row = byId.get(id);
      if (row?.owner?.instanceId !== self || row.token !== run.claimed.term.token) this.end(run);
    }
    await this.claim(self);
  }

  private async claim(self: string) {
    const { store, sender } = this.ports;
    const able = this.known.filter(
      ({ paused, secretId, ...name }) => paused === null && sender.canSign(name, secretId),
    );
    const ids = new Set(able.map(({ subscriberId }) => subscriberId));
    for (const id of this.freeSinceMs.keys()) if (!ids.has(id)) this.freeSinceMs.delete(id);
    const wanted = able.filter((each) => !this.runs.has(each.subscriberId) && this.isToTake(each, self));
    if (wanted.length === 0 || this.isClosing) return;
    const claimed = await store.claimSubscribers(
      wanted.map(({ subscriberId }) => subscriberId),
      self,
    );
    const mayAct = () => self === this.ports.instanceId() && this.ports.mayAct();
    for (const each of claimed) {
      const { subscriberId, name } = each.subscriber;
      if (this.isClosing || !mayAct()) return;
      const run = new SubscriberRun(each, { ...this.runPorts, mayAct });
      this.runs.set(subscriberId, run);
      this.freeSinceMs.delete(subscriberId);
      this.ports.telemetry.emit({ type: "webhook.taken", subscriber: name, token: each.term.token });
      run.grew();
    }
  }

  /** Subscribers are spread by rendezvous hashing. That is advice only: a node that cannot sign leaves its share. */
  private isToTake({ subscriberId, owner }: SubscriberRecord, self: string) {
    if (owner !== null) {
      this.freeSinceMs.delete(subscriberId);
      return owner.instanceId === self;
    }
    const { members, nodeId, clock } = this.ports;
    const staying = members().filter(({ draining }) => !draining);
    const mine = affinity(subscriberId, nodeId);
    if (staying.every((member) => affinity(subscriberId, member.nodeId) <= mine)) return true;
    const nowMs = clock.monotonicMs();
    const sinceMs = this.freeSinceMs.get(subscriberId) ?? nowMs;
    this.freeSinceMs.set(subscriberId, sinceMs);
    return nowMs - sinceMs >= PATIENCE_MS;
  }

  private end(run: SubscriberRun) {
    run.stop();
    this.changed.delete(run);
    const { subscriberId } = run.claimed.term;
    if (this.runs.get(subscriberId) === run) this.runs.delete(subscriberId);
  }

  private storeSoon(run: SubscriberRun, withinMs = STORE_EVERY_MS) {
    const { clock } = this.ports;
    this.changed.add(run);
    const dueMs = clock.monotonicMs() + withinMs;
    if (this.storeAtMs !== null && this.storeAtMs <= dueMs) return;
    this.cancelStore();
    this.storeAtMs = dueMs;
    this.cancelStore = clock.after(withinMs, () => {
      this.storeAtMs = null;
      this.storing.kick();
    });
  }

  private async store() {
    const runs = [...this.changed];
    const { store, instanceId, telemetry } = this.ports;
    const own = runs.filter(({ claimed }) => claimed.term.instanceId === instanceId());
    if (own.length === 0) return;
    this.changed.clear();
    const taken = own.map((run) => ({ run, ...run.snapshot() }));
    try {
      const progress = taken.map((each) => each.progress);
      const stored = await store.writeDeliveries(progress, instanceId());
      for (const { run, covers, progress } of taken) {
        const { subscriberId, token } = run.claimed.term;
        if (stored.has(subscriberId) && progress.paused === null) run.stored(covers);
        else this.end(run);
        if (stored.has(subscriberId)) continue;
        telemetry.emit({ type: "webhook.fenced", subscriber: run.claimed.subscriber.name, token });
      }
    } catch (error) {
      if (!this.isClosing)
        for (const { run } of taken) if (this.runs.has(run.claimed.term.subscriberId)) this.storeSoon(run);
      throw error;
    }
  }
}
