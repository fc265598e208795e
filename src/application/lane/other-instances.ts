/**
 * Checks the other instances: which are alive, which have ended, and which must be declared dead. There are three kinds
 * of evidence, each observed by this node: the heartbeat has expired by the database's clock; by this node's clock, the
 * heartbeat's counter did not change for longer than the lease of its instance; the session lock was missing twice. A
 * declaration is a compare-and-set on the counter, so that a renewal in between wins. A wrong declaration costs the
 * other instance its lanes for a moment, but never causes a wrong write: the fence decides.
 *
 * Reads: instances. Writes: their deaths.
 */

import {
  goneAtMs,
  isGone,
  LOOKS_APART_MS,
  mayJudge,
  missedBefore,
  type OwnSession,
  type Sighting,
  sight,
  UNSEEN,
} from "../../domain/chain/witness.ts";
import { isVanished } from "../../domain/cluster/notices.ts";
import type { DeathEvidence, InstanceRecord, LeaseStore } from "../../ports/lease-store.ts";
import type { Ports } from "../../ports/ports.ts";

interface OtherInstancesPorts extends Pick<Ports, "clock" | "telemetry"> {
  readonly store: Pick<LeaseStore, "instances" | "declareDead">;
  /**
   * Time in ms, beyond its instance's own lease, for which a heartbeat counter must be unchanged before the instance
   * counts as dead.
   */
  readonly clockSkewMs: number;
}

export interface OtherInstancesEvents {
  /** Called with all registered instances after each read. */
  onInstances(instances: readonly InstanceRecord[]): Promise<void>;
  /** Called when an instance has ended, gracefully or declared dead: its lanes are free. */
  onFreed(): void;
}

/** The instance that makes the checks: this node's own. */
export interface Observer {
  readonly instanceId: string | null;
  /**
   * The observer's session lock; null if it has none. Without one it cannot conclude anything from the missing lock of
   * another instance.
   */
  readonly session: OwnSession | null;
}

/** When to check again: at a time on our own clock, or "soon"; null if no further check is needed. */
type Again = number | "soon" | null;

interface Look {
  readonly askedMs: number;
  readonly answeredMs: number;
}

export class OtherInstances {
  private readonly ports;
  private readonly events;
  /** Last value of each instance's heartbeat counter, and when this node first saw it, on our own clock. */
  private readonly watched = new Map<string, { readonly counter: number; readonly sinceMs: number }>();
  private readonly sightings = new Map<string, Sighting>();
  private sightedBy: OwnSession | null = null;
  /**
   * Instances that have shown that they are alive since this node began to observe: by a renewed heartbeat or a held
   * session lock. Also those that this node declared dead.
   */
  private readonly vouched = new Set<string>();
  /** Instances whose end was already reported. */
  private ended: ReadonlySet<string> = new Set();
  /** Instances found by the first read. Only these are waited for at start; instances that register later are not. */
  private present: ReadonlySet<string> | null = null;
  /** True once every instance of the first read has shown that it is alive (see `vouched`), or has ended. */
  acquainted = false;
  /** True if no other instance was alive at the last check. */
  areNone = false;

  constructor(ports: OtherInstancesPorts, events: OtherInstancesEvents) {
    this.ports = ports;
    this.events = events;
  }

  /**
   * Checks the other instances. Returns when to read them again ("soon", a time, or null if nothing is undecided), and
   * our own row as the others see it.
   */
  async look(observer: Observer): Promise<{ readonly again: Again; readonly self: InstanceRecord | null }> {
    // A counter counts as unchanged from the end of the read that first showed it to the start of this read. Otherwise
    // a pause of our own between request and answer would look like the death of all other instances.
    const askedMs = this.ports.clock.monotonicMs();
    const instances = await this.ports.store.instances();
    const look = { askedMs, answeredMs: this.ports.clock.monotonicMs() };
    await this.events.onInstances(instances);
    this.noticeEnded(instances);
    this.startSighting(observer.session);
    const others = instances.filter(({ dead, instanceId }) => !dead && instanceId !== observer.instanceId);
    this.areNone = others.length === 0;
    const doubts: number[] = [];
    for (const instance of others) {
      const judgedAtMs = await this.judge(instance, look);
      if (judgedAtMs !== null) doubts.push(judgedAtMs);
    }
    this.present ??= new Set(others.map(({ instanceId }) => instanceId));
    const strangers = others.filter(({ instanceId }) => !this.vouched.has(instanceId));
    this.acquainted ||= !strangers.some(({ instanceId }) => this.present?.has(instanceId));
    const self = instances.find(({ instanceId }) => instanceId === observer.instanceId) ?? null;
    const again = doubts.length > 0 ? Math.min(...doubts) : this.acquainted ? null : "soon";
    return { again, self };
  }

  /**
   * Declares an instance dead if the evidence suffices. If only its session lock is missing, returns the time at which
   * that will have lasted long enough; null if the lock cannot decide.
   */
  private async judge(instance: InstanceRecord, look: Look): Promise<number | null> {
    const { instanceId, counter } = instance;
    const evidence = this.evidence(instance, look);
    if (evidence === null || typeof evidence === "number") return evidence;
    if (!(await this.ports.store.declareDead(instanceId, counter, evidence))) return look.answeredMs + LOOKS_APART_MS;
    this.vouched.add(instanceId);
    this.ports.telemetry.emit({ type: "instance.declaredDead", instanceId, evidence });
    this.reportVanished(instance);
    this.events.onFreed();
    return null;
  }

  /** Raises the alert only on the node whose declaration of death succeeded, so that there is one alert. */
  private reportVanished({ nodeId, instanceId, lanes, draining }: InstanceRecord) {
    if (!isVanished({ draining, lanes })) return;
    const held = lanes === 1 ? "one lane" : `${lanes} lanes`;
    const message = `node ${nodeId} vanished without draining (instance ${instanceId}, ${held})`;
    this.ports.telemetry.emit({ type: "alert", severity: "ERROR", code: "NODE_VANISHED", message });
  }

  /**
   * Evidence of an instance's death; null if there is none. A number is the time from which its missing lock counts as
   * evidence.
   */
  private evidence(instance: InstanceRecord, look: Look): DeathEvidence | number | null {
    const { instanceId, counter, lock } = instance;
    const seen = this.watched.get(instanceId);
    const patienceMs = leaseOf(instance) + this.ports.clockSkewMs;
    const isStalled = seen?.counter === counter && look.askedMs - seen.sinceMs >= patienceMs;
    if (seen?.counter !== counter) this.watched.set(instanceId, { counter, sinceMs: look.answeredMs });
    if (lock === "held" || (seen !== undefined && seen.counter !== counter)) this.vouched.add(instanceId);
    if (instance.expired) return "expired";
    if (isStalled) return "stood-still";
    const lookedAt = { ...look, lock, counter };
    const sighting = sight(this.sightings.get(instanceId) ?? UNSEEN, lookedAt);
    this.sightings.set(instanceId, sighting);
    if (sighting.gone === null || !mayJudge(this.sightedBy, sighting, look.askedMs)) return null;
    return isGone(sighting, lookedAt) ? "lock-gone" : goneAtMs(sighting);
  }

  /** Discards the observations of our previous session: when it ended, all other sessions may have ended with it. */
  private startSighting(session: OwnSession | null) {
    if (session === this.sightedBy) return;
    this.sightings.clear();
    for (const missed of session?.missed ?? []) this.sightings.set(missed.instanceId, missedBefore(missed));
    this.sightedBy = session;
  }

  /**
   * Reports instances that ended gracefully or were declared dead by another node: their lanes are free, and there may
   * be no other node to acquire them.
   */
  private noticeEnded(instances: readonly InstanceRecord[]) {
    const alive = new Set(instances.filter(({ dead }) => !dead).map(({ instanceId }) => instanceId));
    const dead = instances.filter((instance) => instance.dead).map(({ instanceId }) => instanceId);
    const gone = [...this.watched.keys()].filter((instanceId) => !alive.has(instanceId));
    const isNews = gone.length > 0 || dead.some((instanceId) => !this.ended.has(instanceId));
    for (const instanceId of gone) {
      this.watched.delete(instanceId);
      this.sightings.delete(instanceId);
      this.vouched.delete(instanceId);
    }
    this.ended = new Set(dead);
    if (isNews) this.events.onFreed();
  }
}

/**
 * Lease duration with which an instance last renewed. Nodes may be configured differently. If the observer's own lease
 * were used, an instance with a longer one would be declared dead between two renewals. Both times come from one
 * statement, so that a jump of the database's clock does not change their difference.
 */
function leaseOf({ heartbeatAt, expiresAt }: InstanceRecord) {
  return expiresAt.getTime() - heartbeatAt.getTime();
}
