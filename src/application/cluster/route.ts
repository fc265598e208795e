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
import { PeerUnreachable, type Sending } from "../../ports/peers.ts";
import type { Ports } from "../../ports/ports.ts";
import { BetweenOwners, PutOff } from "../lane/between-owners.ts";
import type { Membership } from "./membership.ts";

export type Result<T> = T | FencepostError;

/** Something that only the owner of one lane can do: several items, each with its own result. */
export interface ForwardedRequest<T> {
  readonly lane: Lane;
  readonly items: number;
  /** Sent again after no answer, it is still done once. If false, no answer ends the delivery. */
  readonly repeatable: boolean;
  /** Done by this node, which may acquire the lane for it. */
  here(which: readonly number[], repeat: boolean): Promise<readonly Result<T>[]>;
  /** Done by the node at that URL. Throws `PeerUnreachable`. */
  at(url: string, which: readonly number[], sending: Sending): Promise<readonly Result<T>[]>;
  /** Done by the owner, which reads the table of waiting requests: no node could be asked for these items. */
  enqueue(which: readonly number[]): Promise<readonly Result<T>[]>;
  /** The result of an item that some node may have done without an answer. */
  unknown(item: number): FencepostError;
}

export interface RoutePorts extends Pick<Ports, "clock" | "telemetry"> {
  readonly membership: Membership;
  /** False: a request for another node's lane is refused with the owner's URL. */
  readonly forwards: boolean;
  /** Empty: this node is embedded, and no other node can ask it. */
  readonly selfUrl: string;
  readonly selfId: () => string;
  readonly holds: (lane: Lane) => boolean;
  /** This node has the lane's key and chain, even if it is draining. */
  readonly hasKey: (lane: Lane) => boolean;
  /** This node may acquire the lane: it has the key and chain, and is not draining. */
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
  private readonly ports;
  /** Owners that answered for a lane; forgotten as soon as one denies it. */
  private readonly owners = new Map<LaneKey, string>();
  /** Last time that this node tried for a lane and an owner without a URL had it. */
  private readonly deniedAtMs = new Map<LaneKey, number>();

  constructor(ports: RoutePorts) {
    this.ports = ports;
  }

  /** Returns one result for each item, in order. */
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
  private otherStop<T>({ request, visited }: Delivery<T>) {
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

/** Refusals that describe the node that was asked, not the request. */
const ABOUT_THE_NODE: ReadonlySet<string> = new Set([
  ...["UNAVAILABLE", "QUEUE_FULL", "QUOTA_EXCEEDED", "INTERNAL"],
  ...["UNKNOWN_SIGNER", "UNKNOWN_CHAIN"],
]);

/** One request under way between nodes: the node to ask next, and the items without a result. */
export class Delivery<T> {
  readonly request;
  readonly visited = new Set<string>();
  open;
  stop;
  stops = 0;
  /** The last node that the request did not reach. */
  unreached: string | null = null;
  /** A node may have acted, and its answer was lost: the next node that is asked must look for the request first. */
  repeated = false;
  /** Nothing more may be tried. */
  over = false;
  private readonly results: (Result<T> | undefined)[];
  private deadlineMs;
  private isProlonged = false;

  constructor(request: ForwardedRequest<T>, stop: string | null, deadlineMs: number) {
    this.request = request;
    this.results = Array.from({ length: request.items }, () => undefined);
    this.open = everyItem(request);
    this.stop = stop;
    this.deadlineMs = deadlineMs;
  }

  goesOn(nowMs: number): boolean {
    return this.open.length > 0 && !this.over && nowMs < this.deadlineMs;
  }

  /** A process that was paused has used up its callers' time without sending anything: once, it gets a little more. */
  prolong(nowMs: number, moreMs: number): void {
    if (this.isProlonged || nowMs < this.deadlineMs) return;
    this.isProlonged = true;
    this.deadlineMs = nowMs + moreMs;
  }

  /** Time for one node's answer. Half of the rest, so that a repeat after no answer has as much again. */
  withinMs(nowMs: number): number {
    const leftMs = this.deadlineMs - nowMs;
    return this.repeated ? leftMs : leftMs / 2;
  }

  /** Keeps the results; items that were refused because another node leads stay open. Returns that node, if it was named. */
  note(results: readonly Result<T>[]): string | null {
    let owner: string | null = null;
    this.visited.add(this.stop as string);
    if (this.stop === this.unreached) this.unreached = null;
    this.open = this.open.filter((index, at) => {
      const result = results[at] as Result<T>;
      this.results[index] = result;
      if (!isElsewhere(result)) return false;
      this.repeated ||= result.extras.outcome === "unknown";
      owner = result.extras.ownerUrl || owner;
      return true;
    });
    return owner;
  }

  /** A node that was asked already is not asked again before the delivery starts over. */
  goTo(stop: string | null): void {
    this.stop = stop !== null && this.visited.has(stop) ? null : stop;
  }

  startOver(stop: string | null): void {
    this.visited.clear();
    this.stop = stop;
  }

  /**
   * No answer. A live node that may have acted is asked once more before any other, because it may have the answer; a node
   * that the request never reached is passed over.
   */
  unanswered({ neverSent }: PeerUnreachable, next: { readonly isLive: boolean; readonly other: () => string | null }) {
    const again = !neverSent && !this.repeated && next.isLive;
    this.repeated ||= !neverSent;
    this.over = !neverSent && !this.request.repeatable;
    if (neverSent) this.unreached = this.stop;
    if (again) return;
    this.visited.add(this.stop as string);
    this.stop = next.other();
  }

  /** This node itself may not act for now: without another node, waiting does not help. */
  isWaitingForItself(): boolean {
    return this.open.some((index) => {
      const result = this.results[index];
      return result instanceof BetweenOwners && !(result instanceof PutOff);
    });
  }

  /** A node that accepted nothing answers for itself alone: the node that was asked before it may have acted. */
  private isInDoubt(result: unknown) {
    return this.repeated && result instanceof FencepostError && ABOUT_THE_NODE.has(result.code);
  }

  conclude(nobodyActs: () => FencepostError): readonly Result<T>[] {
    const open = new Set(this.open);
    return this.results.map((result, index) => {
      if (!open.has(index) && !this.isInDoubt(result)) return result as Result<T>;
      if (this.repeated) return this.request.unknown(index);
      return result instanceof BetweenOwners ? result : nobodyActs();
    });
  }
}

export function everyItem({ items }: Pick<ForwardedRequest<unknown>, "items">): readonly number[] {
  return Array.from({ length: items }, (_, index) => index);
}

function isElsewhere(result: unknown): result is FencepostError {
  return result instanceof BetweenOwners || (result instanceof FencepostError && result.code === "NOT_LEADER");
}

/** No live node acts for the signer, and nothing was accepted. */
export class NobodyActs extends FencepostError {
  constructor(unreached: string | null) {
    const why =
      unreached === null
        ? "no node can act for this signer right now"
        : `the node at ${unreached}, which may act for this signer, cannot be reached`;
    super("UNAVAILABLE", `${why}; nothing was accepted`, { retryAfterSeconds: 1 });
  }
}
