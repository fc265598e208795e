/**
 * Takes errands of one lane to its owner. The guess costs nothing: this node where it holds the lane, else the
 * owner it last heard of, else the member that placement favours. A wrong guess is answered with the owner's name and
 * costs one more stop; a node that was forwarded to never forwards again. While a lane changes hands it has no owner for
 * some milliseconds: the errand then waits and starts over, for as long as its patience lasts.
 *
 * Reads: membership. Writes: nothing. Invariants: I10 (any node may be asked), I5 (a create has its id from here, so one
 * whose answer was lost is repeated as the same transaction). A crash leaves what the owner did; the caller's repeat
 * finds it.
 */
import { DatabaseSilent, FencepostError } from "../../domain/errors.ts";
import { type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { isReachable, type Member } from "../../domain/placement.ts";
import { PeerUnreachable } from "../../ports/peers.ts";
import type { Ports } from "../../ports/ports.ts";
import { BetweenOwners } from "../lane/between-owners.ts";
import { type Errand, type Fate, Journey, NobodyActs } from "./journey.ts";
import type { Membership } from "./membership.ts";

export interface RoutePorts extends Pick<Ports, "clock" | "telemetry"> {
  readonly membership: Membership;
  readonly selfUrl: string;
  readonly selfId: () => string;
  readonly holds: (lane: Lane) => boolean;
  /** True where this node has the lane's key, also while it is leaving. */
  readonly hasKey: (lane: Lane) => boolean;
  /** True where this node may acquire the lane itself. */
  readonly canServe: (lane: Lane) => boolean;
  /** Reads who is live now, and not only on the next beat. */
  readonly lookAgain: () => Promise<void>;
  /** A node did not answer. */
  readonly onUnreachable: () => void;
}

/** Below what a client waits for, every asking and waiting included; a lane changes hands in a fraction of it. */
const PATIENCE_MS = 4_000;
/** For what was queued here while this process stood still past its lease: it is refused here, and fails only if elsewhere too. */
const AFTER_PAUSE_MS = 1_000;
/** How long an errand waits before it starts over: soon at first, then less often. */
const START_OVER_MS = { first: 25, most: 100 };
/** How long a lane that an embedded node owns is not tried for again, while that node lives. */
const TRY_AGAIN_MS = 1_000;

export class Router {
  private readonly ports: RoutePorts;
  /** Owners that answered for a lane; forgotten as soon as one of them denies it. */
  private readonly owners = new Map<LaneKey, string>();
  /** When this node last tried for a lane and an owner that cannot be asked had it. */
  private readonly deniedAtMs = new Map<LaneKey, number>();

  constructor(ports: RoutePorts) {
    this.ports = ports;
  }

  async run<T>(errand: Errand<T>): Promise<readonly Fate<T>[]> {
    const { clock } = this.ports;
    const { lane } = errand;
    const journey = new Journey(errand, this.firstStop(lane), clock.monotonicMs() + PATIENCE_MS);
    if (journey.stop === null) {
      const found = await this.lookOnceMore(lane);
      if (found instanceof FencepostError) return Array.from({ length: errand.items }, () => found);
      journey.startOver(found);
    }
    let pauseMs = START_OVER_MS.first;
    while (journey.goesOn(clock.monotonicMs())) {
      if (journey.stop !== null) {
        await this.visit(journey, journey.stop);
      } else if (this.isOutOfReach(lane) || (journey.isWaitingForItself() && !this.hasOthers())) {
        break;
      } else {
        await clock.sleep(pauseMs);
        pauseMs = Math.min(2 * pauseMs, START_OVER_MS.most);
        journey.startOver(this.firstStop(lane));
      }
    }
    this.report(journey);
    const owner = this.ownerOutOfReach(lane);
    return journey.conclude(() => (owner === null ? new NobodyActs(journey.unreached) : new OutOfReach(owner)));
  }

  private firstStop(lane: Lane): string | null {
    const { holds, selfUrl, membership, canServe } = this.ports;
    if (holds(lane)) return selfUrl;
    const known = this.owners.get(laneKey(lane));
    if (known !== undefined && membership.find(known) !== null) return known;
    const [favourite] = membership.candidates(lane);
    const guess = favourite === undefined ? null : this.stopAt(favourite);
    return guess ?? (canServe(lane) && !this.isDenied(lane) ? selfUrl : null);
  }

  /** Trying for a lane locks its row, and its owner's commits wait for that: not with each create that only it can do. */
  private isDenied(lane: Lane): boolean {
    const atMs = this.deniedAtMs.get(laneKey(lane));
    if (atMs === undefined || this.ports.clock.monotonicMs() - atMs >= TRY_AGAIN_MS) return false;
    return this.isOutOfReach(lane);
  }

  /** A node may have joined since the last look: its signers must not be answered with UNKNOWN_SIGNER. */
  private async lookOnceMore(lane: Lane): Promise<string | FencepostError> {
    try {
      if (!this.ports.membership.isKnown(lane)) await this.ports.lookAgain();
    } catch (error) {
      return new DatabaseSilent("nothing was accepted", error);
    }
    return this.firstStop(lane) ?? this.noStop(lane);
  }

  /** Where a member is asked; null for one without a URL. */
  private stopAt(member: Member): string | null {
    if (member.instanceId === this.ports.selfId()) return this.ports.selfUrl;
    return isReachable(member) ? member.url : null;
  }

  /** The node that should own the lane has no URL: waiting for it does not help. */
  private isOutOfReach(lane: Lane): boolean {
    return this.ownerOutOfReach(lane) !== null;
  }

  private ownerOutOfReach(lane: Lane): Member | null {
    const favourite = this.ports.membership.favourite(lane);
    return favourite !== null && this.stopAt(favourite) === null ? favourite : null;
  }

  private hasOthers(): boolean {
    const { membership, selfId } = this.ports;
    return membership.members.some((member) => member.instanceId !== selfId() && isReachable(member));
  }

  private noStop(lane: Lane): FencepostError {
    const owner = this.ownerOutOfReach(lane);
    if (owner !== null) return new OutOfReach(owner);
    const isKnown = this.ports.hasKey(lane) || this.ports.membership.isKnown(lane);
    return isKnown ? betweenOwners() : unknownSigner(lane);
  }

  private async visit<T>(journey: Journey<T>, stop: string): Promise<void> {
    journey.stops++;
    const { errand, open, repeated } = journey;
    if (stop === this.ports.selfUrl) {
      this.settle(journey, await errand.locally(open, repeated));
      const isDenied = journey.open.length > 0 && this.isOutOfReach(errand.lane);
      if (isDenied) this.deniedAtMs.set(laneKey(errand.lane), this.ports.clock.monotonicMs());
      else this.deniedAtMs.delete(laneKey(errand.lane));
      journey.prolong(this.ports.clock.monotonicMs(), AFTER_PAUSE_MS);
      return;
    }
    try {
      const telling = { repeat: repeated, withinMs: journey.withinMs(this.ports.clock.monotonicMs()) };
      this.settle(journey, await errand.remotely(stop, open, telling));
    } catch (error) {
      if (!(error instanceof PeerUnreachable)) throw error;
      this.owners.delete(laneKey(errand.lane));
      this.ports.onUnreachable();
      const isLive = this.ports.membership.find(stop) !== null;
      journey.unanswered(error, { isLive, other: () => this.otherStop(journey) });
    }
  }

  /** A node that can serve the lane and was not asked yet. */
  private otherStop<T>({ errand, visited }: Journey<T>): string | null {
    const { membership, canServe, selfUrl } = this.ports;
    const others = membership.candidates(errand.lane).flatMap((member) => this.stopAt(member) ?? []);
    const all = canServe(errand.lane) ? [...others, selfUrl] : others;
    return all.find((url) => !visited.has(url)) ?? null;
  }

  private settle<T>(journey: Journey<T>, fates: readonly Fate<T>[]): void {
    const key = laneKey(journey.errand.lane);
    const stop = journey.stop as string;
    const owner = journey.note(fates);
    if (journey.open.length === 0) {
      if (stop !== this.ports.selfUrl) this.owners.set(key, stop);
      return;
    }
    this.owners.delete(key);
    journey.goTo(owner ?? this.otherStop(journey));
  }

  private report<T>(journey: Journey<T>): void {
    const { stops, open, errand } = journey;
    if (stops === 1 && journey.stop === this.ports.selfUrl) return;
    const result = open.length > 0 ? "failed" : stops === 1 ? "hit" : "miss";
    this.ports.telemetry.emit({ type: "forward", lane: errand.lane, result, stops });
  }
}

/** The signer is known, and right now no node may act for it: the node that could is leaving, or takes it up in a moment. */
export function betweenOwners(): FencepostError {
  return new BetweenOwners("this signer is between two owners");
}

export function unknownSigner(lane: Lane): FencepostError {
  return new FencepostError("UNKNOWN_SIGNER", `no live node holds the key of ${lane.signer}`);
}

/** Whatever is asked of its lanes is left for it in the database (unasked.ts), so that no caller has to do as this says. */
export class OutOfReach extends FencepostError {
  constructor({ nodeId }: Pick<Member, "nodeId">) {
    const where = `${nodeId} acts for this signer inside another process, and takes no requests from outside`;
    const instead = `ask it there, or run "fencepost start" on the same database with this signer's key, which any node can ask`;
    super("NOT_LEADER", `${where}: ${instead}`, { ownerUrl: null, retryAfterSeconds: 1 });
  }
}
