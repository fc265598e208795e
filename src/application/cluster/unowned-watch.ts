/**
 * Finds lanes with open work and without an owner. No owner can report that, so every node reads it from the database,
 * and one of them raises the alert. A lane counts once it had no owner at every read for longer than a takeover or a
 * restart takes, or if another live node reports it already.
 *
 * Reads: unowned lanes and, if there are any, the reports of the nodes. Writes: nothing; its rows are part of this
 * node's report (queries/node-reports.ts). A wrong or outdated result costs a look at a page, never a wrong write.
 */
import { alertingMember, type Member, whyUnowned } from "../../domain/cluster/placement.ts";
import { type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { ofUnowned, type UnownedLane } from "../../domain/troubles/find.ts";
import type { Trouble } from "../../domain/troubles/rows.ts";
import { unownedText } from "../../domain/troubles/words.ts";
import type { Ports } from "../../ports/ports.ts";
import type { SightStore } from "../../ports/sight-store.ts";
import { StandingAlerts } from "../standing-alerts.ts";

interface UnownedWatchPorts extends Pick<Ports, "clock" | "telemetry"> {
  readonly store: Pick<SightStore, "unownedLanes" | "reports">;
  readonly members: () => readonly Member[];
  readonly instanceId: () => string;
  readonly leaseDurationMs: number;
}

/** Shortest time without an owner that is reported: a node that is restarted is back within it. */
const LEAST_PATIENCE_MS = 60_000;
/** The same in lease durations. A lane that a node leaves to others is taken after one (membership.ts). */
const PATIENCE_LEASES = 2;
/** Maximum number of lanes that are read. `fencepost_lanes_unowned` counts all of them. */
const MOST = 100;
const CODE = "LANE_UNOWNED";

interface Sighting extends UnownedLane {
  /** First moment of the trouble: the lane has no owner, and something waits for one. */
  readonly since: Date;
  /** Monotonic time of the first of the consecutive reads that found the lane unowned. */
  readonly firstMs: number;
  readonly isLasting: boolean;
}

export class UnownedWatch {
  private readonly ports;
  private readonly patienceMs;
  private readonly alerts;
  private seen: ReadonlyMap<LaneKey, Sighting> = new Map();
  private lookedMs = 0;

  constructor(ports: UnownedWatchPorts) {
    this.ports = ports;
    this.patienceMs = Math.max(LEAST_PATIENCE_MS, PATIENCE_LEASES * ports.leaseDurationMs);
    this.alerts = new StandingAlerts(ports.telemetry);
  }

  /** Reads the unowned lanes, raises alerts about new ones, and resolves the alerts of those that have an owner. */
  async look(): Promise<void> {
    const { clock, store } = this.ports;
    const nowMs = clock.monotonicMs();
    const found = await store.unownedLanes(MOST);
    const reported = found.length === 0 ? new Set<string>() : await this.reportedByOthers();
    // After a pause of this process, a lane may have had owners in between.
    const before = nowMs - this.lookedMs < this.patienceMs / 2 ? this.seen : new Map<LaneKey, Sighting>();
    this.lookedMs = nowMs;
    this.seen = new Map(
      found.map((each) => {
        const { since, firstMs } = before.get(laneKey(each.lane)) ?? { since: this.startOf(each), firstMs: nowMs };
        const isLasting = nowMs - firstMs >= this.patienceMs || reported.has(laneKey(each.lane));
        return [laneKey(each.lane), { ...each, since, firstMs, isLasting }];
      }),
    );
    this.alert();
  }

  /** Rows of the attention list about the lanes that had no owner for long, as of the last look. */
  rows(): readonly Trouble[] {
    return this.lasting().map((each) => ofUnowned(each, { since: each.since, reason: this.reasonOf(each.lane) }));
  }

  private lasting() {
    return [...this.seen.values()].filter(({ isLasting }) => isLasting);
  }

  private reasonOf(lane: Lane) {
    return whyUnowned(lane, this.ports.members());
  }

  private startOf({ heldAt, oldestAt }: UnownedLane) {
    const nowMs = this.ports.clock.now().getTime();
    return new Date(Math.min(nowMs, Math.max(heldAt?.getTime() ?? nowMs, oldestAt.getTime())));
  }

  private async reportedByOthers(): Promise<ReadonlySet<string>> {
    const self = this.ports.instanceId();
    const reports = (await this.ports.store.reports()).filter(({ instanceId }) => instanceId !== self);
    const rows = reports.flatMap(({ findings }) => findings).filter(({ leftMs }) => leftMs === undefined);
    return new Set(
      rows.flatMap(({ code, chainId, signer }) =>
        code === CODE && chainId !== null && signer !== null ? [laneKey({ chainId, signer })] : [],
      ),
    );
  }

  private alert() {
    const { members, instanceId } = this.ports;
    this.alerts.leave((key) => this.seen.has(key), "a node acts for the lane again, or nothing waits there any more");
    if (alertingMember(members())?.instanceId !== instanceId()) return;
    for (const { lane, open } of this.lasting()) {
      const what = unownedText(this.reasonOf(lane)).replace("its signer", `${lane.signer} on chain ${lane.chainId}`);
      const message = `${what} (${open === 1 ? "one transaction waits" : `${open} transactions wait`})`;
      this.alerts.judge({ code: CODE, lane, message }, true);
    }
  }
}
