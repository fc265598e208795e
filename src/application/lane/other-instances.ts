/**
 * The other instances: who is there, who has ended, and who must be declared dead. Three kinds of evidence, each
 * observed by this node: the heartbeat is past by the database's clock; the counter did not change for longer, on our
 * clock, than the lease that its row was renewed for; the session lock was missing twice. A declaration is a
 * compare-and-set on the counter, so that a sign of life in between wins; and a wrong one costs the other its lanes for
 * a moment, never a wrong write: the fence decides.
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
  /** A counter must be unchanged for this much longer than its own lease. */
  readonly clockSkewMs: number;
}

export interface OtherInstancesEvents {
  /** All registered instances, as just read. */
  onInstances(instances: readonly InstanceRecord[]): Promise<void>;
  /** Some instance has ended, declared dead or by its own word: its lanes are free. */
  onFreed(): void;
}

/** The instance that observes. */
export interface Observer {
  readonly instanceId: string | null;
  /** Key of its session lock; null: it has none, and cannot judge by those of others. */
  readonly session: OwnSession | null;
}

/** Time of the next look, on our own clock; null: none is needed. */
type Again = number | "soon" | null;

interface Look {
  readonly askedMs: number;
  readonly heardMs: number;
}

export class OtherInstances {
  private readonly ports;
  private readonly events;
  /** Counters as last seen change, and when, on our own clock. */
  private readonly watched = new Map<string, { readonly counter: number; readonly sinceMs: number }>();
  private readonly sightings = new Map<string, Sighting>();
  private sightedBy: OwnSession | null = null;
  /** Instances that showed a sign of life since we began to look. */
  private readonly vouched = new Set<string>();
  /** Instances whose end has been noticed. */
  private ended: ReadonlySet<string> = new Set();
  /** Instances of the first read. Later ones may come and go for ever, and are not waited for. */
  private present: ReadonlySet<string> | null = null;
  /** All instances that were there when we came have shown a sign of life, or are over. */
  acquainted = false;
  /** No other instance was alive at the last look. */
  areNone = false;

  constructor(ports: OtherInstancesPorts, events: OtherInstancesEvents) {
    this.ports = ports;
    this.events = events;
  }

  /**
   * When one more read would decide an open question: at that moment, "soon", or null if there is none. Also returns
   * our own row as the others see it.
   */
  async look(observer: Observer): Promise<{ readonly again: Again; readonly self: InstanceRecord | null }> {
    // A counter counts as unchanged from the end of the read that first showed it to the start of this read. Otherwise
    // a pause of our own between request and answer would look like the death of all other instances.
    const askedMs = this.ports.clock.monotonicMs();
    const instances = await this.ports.store.instances();
    const look = { askedMs, heardMs: this.ports.clock.monotonicMs() };
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

  /** When it can be judged by its lock, which is missing, but has not been missed for long enough; null: never. */
  private async judge(instance: InstanceRecord, look: Look): Promise<number | null> {
    const { instanceId, counter } = instance;
    const evidence = this.evidence(instance, look);
    if (evidence === null || typeof evidence === "number") return evidence;
    if (!(await this.ports.store.declareDead(instanceId, counter, evidence))) return look.heardMs + LOOKS_APART_MS;
    this.vouched.add(instanceId);
    this.ports.telemetry.emit({ type: "instance.declaredDead", instanceId, evidence });
    this.reportVanished(instance);
    this.events.onFreed();
    return null;
  }

  /** Its notice was written with the declaration, which only one node makes: so this is said once. */
  private reportVanished({ nodeId, instanceId, lanes, draining }: InstanceRecord) {
    if (!isVanished({ draining, lanes })) return;
    const message = `node ${nodeId} vanished without draining (instance ${instanceId}, ${lanes} lanes)`;
    this.ports.telemetry.emit({ type: "alert", severity: "ERROR", code: "NODE_VANISHED", message });
  }

  /** A number: when it can be judged by its lock. */
  private evidence(instance: InstanceRecord, look: Look): DeathEvidence | number | null {
    const { instanceId, counter, lock } = instance;
    const seen = this.watched.get(instanceId);
    const patienceMs = leaseOf(instance) + this.ports.clockSkewMs;
    const stoodStill = seen?.counter === counter && look.askedMs - seen.sinceMs >= patienceMs;
    if (seen?.counter !== counter) this.watched.set(instanceId, { counter, sinceMs: look.heardMs });
    if (lock === "held" || (seen !== undefined && seen.counter !== counter)) this.vouched.add(instanceId);
    if (instance.expired) return "expired";
    if (stoodStill) return "stood-still";
    const lookedAt = { ...look, lock, counter };
    const sighting = sight(this.sightings.get(instanceId) ?? UNSEEN, lookedAt);
    this.sightings.set(instanceId, sighting);
    if (sighting.gone === null || !mayJudge(this.sightedBy, sighting, look.askedMs)) return null;
    return isGone(sighting, lookedAt) ? "lock-gone" : goneAtMs(sighting);
  }

  /** Observations made during our own session are void once that has ended: all sessions may have ended with it. */
  private startSighting(session: OwnSession | null) {
    if (session === this.sightedBy) return;
    this.sightings.clear();
    for (const missed of session?.missed ?? []) this.sightings.set(missed.instanceId, missedBefore(missed));
    this.sightedBy = session;
  }

  /** A graceful end, or one that another node declared: its lanes are free too, and no other node may be there to take them. */
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
 * For how long an instance last renewed. Nodes may be configured differently: measured by the observer's own lease, one
 * with a longer lease would be declared dead between two of its renewals. Both times are of one statement, so that a
 * database clock that jumps does not change their difference.
 */
function leaseOf({ heartbeatAt, expiresAt }: InstanceRecord) {
  return expiresAt.getTime() - heartbeatAt.getTime();
}
