/**
 * The one way to a lane's owner, for creates and for everything else: this node, else the owner's node, else the table of
 * waiting requests. The first guess costs nothing: this node if it holds the lane, else the owner that last answered, else the
 * member that placement favours. A wrong guess is answered with the owner's URL and costs one more stop; a node that was
 * forwarded to never forwards again. While a lane changes hands it has no owner for some milliseconds: the request then waits
 * and starts over until its deadline.
 *
 * Reads: membership. Writes: nothing. Invariants: I10 (any node may be asked), I5 (a create has its id from here, so one
 * whose answer was lost is repeated as the same transaction). A crash leaves what the owner did; the caller's repeat
 * finds it.
 */

import { isReachable, type Member } from "../../domain/cluster/placement.ts";
import { DatabaseSilent, FencepostError } from "../../domain/errors.ts";
import { type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { PeerUnreachable } from "../../ports/peers.ts";
import type { Ports } from "../../ports/ports.ts";
import { BetweenOwners } from "../lane/between-owners.ts";
import { Delivery, everyItem, type ForwardedRequest, NobodyActs, type Result } from "./delivery.ts";
import type { Membership } from "./membership.ts";

export interface RoutePorts extends Pick<Ports, "clock" | "telemetry"> {
  readonly membership: Membership;
  /** False: a request for another node's lane is refused with the owner's URL. */
  readonly forwards: boolean;
  /** Empty: this node is embedded, and no other node can ask it. */
  readonly selfUrl: string;
  readonly selfId: () => string;
  readonly holds: (lane: Lane) => boolean;
  /** This node has the lane's key, and may be leaving. */
  readonly hasKey: (lane: Lane) => boolean;
  /** This node may acquire the lane itself. */
  readonly canServe: (lane: Lane) => boolean;
  /** Reads the live members now, not on the next beat. */
  readonly lookAgain: () => Promise<void>;
  /** A node did not answer. */
  readonly onUnreachable: () => void;
}

/** Below what a client waits for, all attempts and pauses included; a lane changes hands in a fraction of it. */
const PATIENCE_MS = 4_000;
/** For requests that were queued here while this process was paused past its lease: they are refused here, and may succeed elsewhere. */
const AFTER_PAUSE_MS = 1_000;
/** Pause before a request starts over: short at first, then longer. */
const START_OVER_MS = { first: 25, most: 100 };
/** A lane of a live embedded node is not tried for again within this time. */
const TRY_AGAIN_MS = 1_000;

export class Router {
  private readonly ports: RoutePorts;
  /** Owners that answered for a lane; forgotten as soon as one denies it. */
  private readonly owners = new Map<LaneKey, string>();
  /** Last time that this node tried for a lane and an owner without a URL had it. */
  private readonly deniedAtMs = new Map<LaneKey, number>();

  constructor(ports: RoutePorts) {
    this.ports = ports;
  }

  /** One result for each item, in order. */
  async deliver<T>(request: ForwardedRequest<T>): Promise<readonly Result<T>[]> {
    const results = await (this.ports.forwards ? this.forward(request) : request.here(everyItem(request), false));
    const unasked = everyItem(request).filter((item) => this.isUnasked(results[item]));
    if (unasked.length === 0) return results;
    const enqueued = await request.enqueue(unasked);
    const settled = [...results];
    unasked.forEach((item, at) => {
      settled[item] = enqueued[at] as Result<T>;
    });
    return settled;
  }

  /**
   * Nothing was done because the lane's owner cannot be asked; the request itself was not refused. A node with a URL enqueues
   * for owners without one alone: while a lane changes hands among nodes with URLs, its caller does better to ask again. A
   * request that may have been done is never enqueued.
   */
  private isUnasked(result: unknown) {
    if (!(result instanceof FencepostError) || result.extras.outcome === "unknown") return false;
    if (result instanceof OutOfReach) return true;
    const isBetween = result.code === "NOT_LEADER" || result instanceof BetweenOwners || result instanceof NobodyActs;
    return this.ports.selfUrl === "" && isBetween;
  }

  private async forward<T>(request: ForwardedRequest<T>): Promise<readonly Result<T>[]> {
    const { clock } = this.ports;
    const { lane } = request;
    const delivery = new Delivery(request, this.firstStop(lane), clock.monotonicMs() + PATIENCE_MS);
    if (delivery.stop === null) {
      const found = await this.lookOnceMore(lane);
      if (found instanceof FencepostError) return Array.from({ length: request.items }, () => found);
      delivery.startOver(found);
    }
    let pauseMs = START_OVER_MS.first;
    while (delivery.goesOn(clock.monotonicMs())) {
      if (delivery.stop !== null) {
        await this.visit(delivery, delivery.stop);
      } else if (this.ownerOutOfReach(lane) !== null || (delivery.isWaitingForItself() && !this.hasOthers())) {
        break;
      } else {
        await clock.sleep(pauseMs);
        pauseMs = Math.min(2 * pauseMs, START_OVER_MS.most);
        delivery.startOver(this.firstStop(lane));
      }
    }
    this.report(delivery);
    const owner = this.ownerOutOfReach(lane);
    return delivery.conclude(() => (owner === null ? new NobodyActs(delivery.unreached) : new OutOfReach(owner)));
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

  /** Trying for a lane locks its row, and its owner's commits wait for that: this node does not try with each create. */
  private isDenied(lane: Lane) {
    const atMs = this.deniedAtMs.get(laneKey(lane));
    if (atMs === undefined || this.ports.clock.monotonicMs() - atMs >= TRY_AGAIN_MS) return false;
    return this.ownerOutOfReach(lane) !== null;
  }

  /** A node may have joined since the last look: its signers must not be answered with UNKNOWN_SIGNER. */
  private async lookOnceMore(lane: Lane) {
    try {
      if (!this.ports.membership.isKnown(lane)) await this.ports.lookAgain();
    } catch (error) {
      return new DatabaseSilent("nothing was accepted", error);
    }
    return this.firstStop(lane) ?? this.unserved(lane);
  }

  /** URL of a member; null: it has none. */
  private stopAt(member: Member) {
    if (member.instanceId === this.ports.selfId()) return this.ports.selfUrl;
    return isReachable(member) ? member.url : null;
  }

  /** The node that should own the lane, if it has no URL: waiting for it does not help. */
  private ownerOutOfReach(lane: Lane) {
    const favourite = this.ports.membership.favourite(lane);
    return favourite !== null && this.stopAt(favourite) === null ? favourite : null;
  }

  private hasOthers() {
    const { membership, selfId } = this.ports;
    return membership.members.some((member) => member.instanceId !== selfId() && isReachable(member));
  }

  /** Why no node can be asked: the owner has no URL, no node may act for the signer right now, or none has its key. */
  unserved(lane: Lane): FencepostError {
    const owner = this.ownerOutOfReach(lane);
    if (owner !== null) return new OutOfReach(owner);
    const isKnown = this.ports.hasKey(lane) || this.ports.membership.isKnown(lane);
    if (isKnown) return new BetweenOwners("this signer is between two owners");
    return new FencepostError("UNKNOWN_SIGNER", `no live node holds the key of ${lane.signer}`);
  }

  private async visit<T>(delivery: Delivery<T>, stop: string) {
    delivery.stops++;
    const { request, open, repeated } = delivery;
    const { clock, selfUrl, membership, onUnreachable } = this.ports;
    const key = laneKey(request.lane);
    if (stop === selfUrl) {
      this.settle(delivery, stop, await request.here(open, repeated));
      const isDenied = delivery.open.length > 0 && this.ownerOutOfReach(request.lane) !== null;
      if (isDenied) this.deniedAtMs.set(key, clock.monotonicMs());
      else this.deniedAtMs.delete(key);
      delivery.prolong(clock.monotonicMs(), AFTER_PAUSE_MS);
      return;
    }
    try {
      const sending = { repeat: repeated, withinMs: delivery.withinMs(clock.monotonicMs()) };
      this.settle(delivery, stop, await request.at(stop, open, sending));
    } catch (error) {
      if (!(error instanceof PeerUnreachable)) throw error;
      this.owners.delete(key);
      onUnreachable();
      delivery.unanswered(error, { isLive: membership.find(stop) !== null, other: () => this.otherStop(delivery) });
    }
  }

  /** A node that can serve the lane and was not asked yet. */
  private otherStop<T>({ request, visited }: Delivery<T>): string | null {
    const { membership, canServe, selfUrl } = this.ports;
    const others = membership.candidates(request.lane).flatMap((member) => this.stopAt(member) ?? []);
    const all = canServe(request.lane) ? [...others, selfUrl] : others;
    return all.find((url) => !visited.has(url)) ?? null;
  }

  private settle<T>(delivery: Delivery<T>, stop: string, results: readonly Result<T>[]) {
    const key = laneKey(delivery.request.lane);
    const owner = delivery.note(results);
    if (delivery.open.length === 0) {
      if (stop !== this.ports.selfUrl) this.owners.set(key, stop);
      return;
    }
    this.owners.delete(key);
    delivery.goTo(owner ?? this.otherStop(delivery));
  }

  private report<T>({ stops, stop, open, request }: Delivery<T>) {
    if (stops === 1 && stop === this.ports.selfUrl) return;
    const result = open.length > 0 ? "failed" : stops === 1 ? "hit" : "miss";
    this.ports.telemetry.emit({ type: "forward", lane: request.lane, result, stops });
  }
}

/** Requests for its lanes are enqueued in the database, so a caller sees this only if that is not possible. */
export class OutOfReach extends FencepostError {
  constructor({ nodeId }: Pick<Member, "nodeId">) {
    const where = `${nodeId} acts for this signer inside another process, and takes no requests from outside`;
    const instead = `ask it there, or run "fencepost start" on the same database with this signer's key, which any node can ask`;
    super("NOT_LEADER", `${where}: ${instead}`, { ownerUrl: null, retryAfterSeconds: 1 });
  }
}
