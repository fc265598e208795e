/**
 * Routes creates and all other requests to a lane's owner: this node, else the owner's node, else the table of waiting
 * requests. The first guess is free: this node if it owns the lane, else the owner that last answered, else the member
 * that placement assigns. A node that is guessed wrongly answers with the owner's URL, which costs one more hop; a
 * forwarded request is never forwarded again. While a lane moves it has no owner for some milliseconds: the request
 * then waits and starts over until its deadline.
 *
 * Reads: membership. Writes: nothing. Invariants: I10 (any node accepts any request), I5 (the id of a create is
 * assigned here, so a create whose answer was lost is repeated as the same transaction). After a crash, what the owner
 * did remains; a retry by the caller finds it.
 */

import { isReachable, type Member } from "../../domain/cluster/placement.ts";
import { DatabaseSilent, FencepostError } from "../../domain/errors.ts";
import { type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { PeerUnreachable, type Sending } from "../../ports/peers.ts";
import type { Ports } from "../../ports/ports.ts";
import { BetweenOwners, PutOff } from "../lane/between-owners.ts";
import type { Membership } from "./membership.ts";

export type Result<T> = T | FencepostError;

/** A request that only the owner of one lane can carry out: several items, each with its own result. */
export interface ForwardedRequest<T> {
  readonly lane: Lane;
  readonly items: number;
  /**
   * True if the request may safely be sent again when no answer arrives, because it takes effect only once. If false, a
   * missing answer ends the delivery.
   */
  readonly repeatable: boolean;
  /** Carries out the items on this node, which may acquire the lane for them. */
  here(which: readonly number[], repeat: boolean): Promise<readonly Result<T>[]>;
  /** Sends the items to the node at that URL. Throws `PeerUnreachable`. */
  at(url: string, which: readonly number[], sending: Sending): Promise<readonly Result<T>[]>;
  /**
   * Enqueues items in the table of waiting requests, which the owner reads. Used if no node could be called for them.
   */
  enqueue(which: readonly number[]): Promise<readonly Result<T>[]>;
  /** The result for an item that a node may have carried out although no answer arrived. */
  unknown(item: number): FencepostError;
}

export interface RoutePorts extends Pick<Ports, "clock" | "telemetry"> {
  readonly membership: Membership;
  /** If false, a request for another node's lane is refused with the owner's URL. */
  readonly forwards: boolean;
  /** This node's URL; empty if it is embedded and cannot be called by other nodes. */
  readonly selfUrl: string;
  readonly selfId: () => string;
  readonly holds: (lane: Lane) => boolean;
  /** True if this node has the lane's key and chain, even while it is draining. */
  readonly hasKey: (lane: Lane) => boolean;
  /** True if this node may acquire the lane: it has the key and chain, and is not draining. */
  readonly canServe: (lane: Lane) => boolean;
  /** Reads the live members now instead of at the next heartbeat. */
  readonly lookAgain: () => Promise<void>;
  /** Called when a node did not answer. */
  readonly onUnreachable: () => void;
}

/**
 * Time in ms for one delivery, with all attempts and pauses. It is shorter than a client's time-out, and many times as
 * long as the hand-over of a lane.
 */
const PATIENCE_MS = 4_000;
/**
 * Extra time for requests that were queued here while this process was paused past its lease: this node refuses them,
 * but another may accept them.
 */
const AFTER_PAUSE_MS = 1_000;
/** Pause in ms before the delivery of a request starts over: short at first, then longer. */
const START_OVER_MS = { first: 25, most: 100 };
/** Time in ms for which this node does not try again to acquire a lane that a live embedded node owns. */
const TRY_AGAIN_MS = 1_000;

export class Router {
  private readonly ports;
  /** Last known owner of each lane, learned from responses; removed as soon as that node denies owning the lane. */
  private readonly owners = new Map<LaneKey, string>();
  /** Time at which this node last tried to acquire each lane and found that it belongs to an owner without a URL. */
  private readonly deniedAtMs = new Map<LaneKey, number>();

  constructor(ports: RoutePorts) {
    this.ports = ports;
  }

  /** Delivers a request; returns one result for each item, in order. */
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
   * True if nothing was done because no owner could be called, not because the request itself was refused. Such a
   * request may be enqueued. A node with a URL enqueues only for owners without a URL: while a lane moves between nodes
   * with URLs, a retry by the caller is quicker. A request that may have been carried out is never enqueued.
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

  /** Acquiring locks the lane's row and delays its owner's commits, so this node does not try with each create. */
  private isDenied(lane: Lane) {
    const atMs = this.deniedAtMs.get(laneKey(lane));
    if (atMs === undefined || this.ports.clock.monotonicMs() - atMs >= TRY_AGAIN_MS) return false;
    return this.ownerOutOfReach(lane) !== null;
  }

  /**
   * Reads membership once more: a node may have joined since the last read, and requests for its signers must not fail
   * with UNKNOWN_SIGNER.
   */
  private async lookOnceMore(lane: Lane) {
    try {
      if (!this.ports.membership.isKnown(lane)) await this.ports.lookAgain();
    } catch (error) {
      return new DatabaseSilent("nothing was accepted", error);
    }
    return this.firstStop(lane) ?? this.unserved(lane);
  }

  /** URL of a member; null if it has none. */
  private stopAt(member: Member) {
    if (member.instanceId === this.ports.selfId()) return this.ports.selfUrl;
    return isReachable(member) ? member.url : null;
  }

  /**
   * The lane's intended owner if it has no URL and so cannot be called; else null. Waiting does not help in that case.
   */
  private ownerOutOfReach(lane: Lane) {
    const favourite = this.ports.membership.favourite(lane);
    return favourite !== null && this.stopAt(favourite) === null ? favourite : null;
  }

  private hasOthers() {
    const { membership, selfId } = this.ports;
    return membership.members.some((member) => member.instanceId !== selfId() && isReachable(member));
  }

  /**
   * Error that states why no node can be called: the owner has no URL, no node may act for the signer right now, or
   * none has its key.
   */
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

  /** A node that can serve the lane and was not called yet. */
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

/**
 * The lane's owner has no URL. Requests for its lanes are enqueued in the database, so a caller sees this error only if
 * enqueueing is not possible.
 */
export class OutOfReach extends FencepostError {
  constructor({ nodeId }: Pick<Member, "nodeId">) {
    const where = `${nodeId} acts for this signer inside another process, and takes no requests from outside`;
    const instead = `ask it there, or run "fencepost start" on the same database with this signer's key, which any node can ask`;
    super("NOT_LEADER", `${where}: ${instead}`, { ownerUrl: null, retryAfterSeconds: 1 });
  }
}

/** Codes of refusals that concern the node, the chain or the policies: the same request may be accepted later. */
const MAY_CHANGE: ReadonlySet<string> = new Set([
  ...["UNAVAILABLE", "QUEUE_FULL", "QUOTA_EXCEEDED", "INTERNAL"],
  ...["UNKNOWN_SIGNER", "UNKNOWN_CHAIN", "SUBMISSION_REJECTED", "FORBIDDEN"],
]);

/** The delivery of one request: the node to call next, and the items that have no result yet. */
export class Delivery<T> {
  readonly request;
  readonly visited = new Set<string>();
  open;
  stop;
  stops = 0;
  /** The last node that could not be reached. */
  unreached: string | null = null;
  /** True if a node may have acted and its answer was lost: the next node must look for the request before it acts. */
  repeated = false;
  /** True if the delivery has ended and nothing more may be tried. */
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

  /** Extends the deadline, once: a paused process has used up its callers' time without sending anything. */
  prolong(nowMs: number, moreMs: number): void {
    if (this.isProlonged || nowMs < this.deadlineMs) return;
    this.isProlonged = true;
    this.deadlineMs = nowMs + moreMs;
  }

  /**
   * Time-out for the answer of one node: half of the remaining time, or all of it for a repeat after a missing answer.
   */
  withinMs(nowMs: number): number {
    const leftMs = this.deadlineMs - nowMs;
    return this.repeated ? leftMs : leftMs / 2;
  }

  /**
   * Stores the results. Items that were refused because another node owns the lane stay open. Returns the URL of that
   * other node, if a refusal names it.
   */
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

  /** Sets the next node. A node that was already called is not called again before the delivery starts over. */
  goTo(stop: string | null): void {
    this.stop = stop !== null && this.visited.has(stop) ? null : stop;
  }

  startOver(stop: string | null): void {
    this.visited.clear();
    this.stop = stop;
  }

  /**
   * Handles a missing answer. A live node that may have acted is called once more before any other, because it may have
   * the result; a node that the request never reached is skipped.
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

  /** True if this node may not act for the lane now. If no other node can act either, waiting does not help. */
  isWaitingForItself(): boolean {
    return this.open.some((index) => {
      const result = this.results[index];
      return result instanceof BetweenOwners && !(result instanceof PutOff);
    });
  }

  /**
   * True if the request was refused but its outcome is still unknown: a node that was called earlier may have acted, or
   * may still act. On a slow wire, or in the socket of a frozen process, a request arrives long after its caller gave up.
   */
  private isInDoubt(result: unknown) {
    return this.repeated && result instanceof FencepostError && MAY_CHANGE.has(result.code);
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

/** Error: no live node acts for the signer, and nothing was accepted. */
export class NobodyActs extends FencepostError {
  constructor(unreached: string | null) {
    const why =
      unreached === null
        ? "no node can act for this signer right now"
        : `the node at ${unreached}, which may act for this signer, cannot be reached`;
    super("UNAVAILABLE", `${why}; nothing was accepted`, { retryAfterSeconds: 1 });
  }
}
