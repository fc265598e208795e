/**
 * Takes creates of one lane to whoever owns it. The guess costs nothing: this node where it holds the lane, else the
 * owner it last heard of, else the member that placement favours. A wrong guess is answered with the owner's name and
 * costs one more stop; a node that was forwarded to never forwards again. While a lane changes hands nobody leads it for
 * some milliseconds: the errand then waits and starts over, for as long as its patience lasts.
 *
 * Reads: membership. Writes: nothing. Invariants: I10 (any node may be asked), I5 (the id is given here, so a create whose
 * answer was lost is repeated as the same transaction). A crash leaves what the owner did; the caller's repeat finds it.
 */
import { FencepostError, unavailable } from "../../domain/errors.ts";
import { type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { isReachable, type Member } from "../../domain/placement.ts";
import type { Clock } from "../../ports/clock.ts";
import { type ForwardedCreate, type Peers, PeerUnreachable } from "../../ports/peers.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import type { Created } from "../api.ts";
import type { Membership } from "./membership.ts";

export type Fate = Created | FencepostError;

export interface RoutePorts {
  readonly peers: Pick<Peers, "create">;
  readonly membership: Membership;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  readonly selfUrl: string;
  readonly selfId: () => string;
  readonly holds: (lane: Lane) => boolean;
  /** True where this node may acquire the lane itself. */
  readonly canServe: (lane: Lane) => boolean;
  /** True where the signer is known here, even while this node takes no lane. */
  readonly hasKey: (lane: Lane) => boolean;
}

/** Creates of one lane, and how this node would do them itself. */
export interface Errand {
  readonly lane: Lane;
  readonly creates: readonly ForwardedCreate[];
  readonly locally: (which: readonly number[], repeat: boolean) => Promise<readonly Fate[]>;
}

/** Below what a client waits for; a lane changes hands in a fraction of it. */
const PATIENCE_MS = 4_000;
const START_OVER_MS = 25;

export class Router {
  private readonly ports: RoutePorts;
  /** Owners that answered for a lane; forgotten as soon as one of them denies it. */
  private readonly owners = new Map<LaneKey, string>();

  constructor(ports: RoutePorts) {
    this.ports = ports;
  }

  async run(errand: Errand): Promise<readonly Fate[]> {
    const { clock } = this.ports;
    const deadlineMs = clock.monotonicMs() + PATIENCE_MS;
    const journey = new Journey(errand, this.firstStop(errand.lane));
    if (journey.stop === null) return errand.creates.map(() => this.nobody(errand.lane));
    while (journey.open.length > 0 && clock.monotonicMs() < deadlineMs) {
      if (journey.stop !== null) {
        await this.visit(journey, journey.stop);
      } else if (this.isOutOfReach(errand.lane)) {
        break;
      } else {
        await clock.sleep(START_OVER_MS);
        journey.startOver(this.firstStop(errand.lane));
      }
    }
    this.report(journey);
    return journey.conclude(this.isOutOfReach(errand.lane));
  }

  private firstStop(lane: Lane): string | null {
    const { holds, selfUrl, membership, canServe } = this.ports;
    if (holds(lane)) return selfUrl;
    const known = this.owners.get(laneKey(lane));
    if (known !== undefined && membership.find(known) !== null) return known;
    const favourite = membership.favourite(lane);
    const guess = favourite === null ? null : this.stopAt(favourite);
    return guess ?? (canServe(lane) ? selfUrl : null);
  }

  /** Where a member is asked; null for one that nobody can ask. */
  private stopAt(member: Member): string | null {
    if (member.instanceId === this.ports.selfId()) return this.ports.selfUrl;
    return isReachable(member) ? member.url : null;
  }

  /** Whoever should lead takes no requests from outside: waiting for it leads nowhere. */
  private isOutOfReach(lane: Lane): boolean {
    const favourite = this.ports.membership.favourite(lane);
    return favourite !== null && this.stopAt(favourite) === null;
  }

  private nobody(lane: Lane): FencepostError {
    if (this.isOutOfReach(lane)) return outOfReach();
    return this.ports.hasKey(lane) ? betweenOwners() : unknownSigner(lane);
  }

  private async visit(journey: Journey, stop: string): Promise<void> {
    journey.stops++;
    const { errand, open, repeated } = journey;
    if (stop === this.ports.selfUrl) {
      this.settle(journey, await errand.locally(open, repeated));
      return;
    }
    try {
      const creates = open.map((index) => errand.creates[index] as ForwardedCreate);
      this.settle(journey, await this.ports.peers.create(stop, creates, repeated));
    } catch (error) {
      if (!(error instanceof PeerUnreachable)) throw error;
      this.owners.delete(laneKey(errand.lane));
      journey.unanswered(error, () => this.otherStop(journey));
    }
  }

  /** Somebody who can serve the lane and was not asked yet. */
  private otherStop({ errand, visited }: Journey): string | null {
    const { membership, canServe, selfUrl } = this.ports;
    const others = membership.candidates(errand.lane).flatMap((member) => this.stopAt(member) ?? []);
    const all = canServe(errand.lane) ? [...others, selfUrl] : others;
    return all.find((url) => !visited.has(url)) ?? null;
  }

  private settle(journey: Journey, fates: readonly Fate[]): void {
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

  private report(journey: Journey): void {
    const { stops, open, errand } = journey;
    if (stops === 1 && journey.stop === this.ports.selfUrl) return;
    const result = open.length > 0 ? "failed" : stops === 1 ? "hit" : "miss";
    this.ports.telemetry.emit({ type: "forward", lane: errand.lane, result, stops });
  }
}

/** One errand under way: where it goes next, and what is still open. */
class Journey {
  readonly errand: Errand;
  private readonly fates: (Fate | undefined)[];
  readonly visited = new Set<string>();
  open: readonly number[];
  stop: string | null;
  stops = 0;
  /** A node may have acted without our hearing of it: whoever is asked next must look for the ids first. */
  repeated = false;

  constructor(errand: Errand, stop: string | null) {
    this.errand = errand;
    this.fates = new Array<Fate | undefined>(errand.creates.length);
    this.open = errand.creates.map((_, index) => index);
    this.stop = stop;
  }

  /** Keeps fates; what was refused because another node leads stays open. Returns that node, where it was named. */
  note(fates: readonly Fate[]): string | null {
    let owner: string | null = null;
    this.visited.add(this.stop as string);
    this.open = this.open.filter((index, at) => {
      const fate = fates[at] as Fate;
      this.fates[index] = fate;
      if (!(fate instanceof FencepostError && fate.code === "NOT_LEADER")) return false;
      owner = fate.extras.ownerUrl || owner;
      return true;
    });
    return owner;
  }

  /** Null where that node was asked already: then there is nothing left but to wait. */
  goTo(stop: string | null): void {
    this.stop = stop !== null && this.visited.has(stop) ? null : stop;
  }

  startOver(stop: string | null): void {
    this.visited.clear();
    this.stop = stop;
  }

  /** Silence from a node that may have acted: it is asked once more before anybody else, because the answer is there. */
  unanswered(error: PeerUnreachable, other: () => string | null): void {
    const again = !error.neverSent && !this.repeated;
    this.repeated ||= !error.neverSent;
    if (again) return;
    this.visited.add(this.stop as string);
    this.stop = other();
  }

  conclude(isOutOfReach: boolean): readonly Fate[] {
    const open = new Set(this.open);
    return this.errand.creates.map(({ txId }, index) => {
      const fate = this.fates[index] as Fate;
      return open.has(index) || this.isInDoubt(fate) ? this.unresolved(txId, isOutOfReach) : fate;
    });
  }

  /** A node that accepted nothing speaks for itself: not for the one that was asked before and did not answer. */
  private isInDoubt(fate: Fate): boolean {
    return this.repeated && fate instanceof FencepostError && fate.code === "UNAVAILABLE";
  }

  private unresolved(txId: string, isOutOfReach: boolean): FencepostError {
    if (!this.repeated && isOutOfReach) return outOfReach();
    if (!this.repeated) return unavailable("no node can act for this signer right now; nothing was accepted");
    const detail =
      "the node that acts for this signer did not answer; ask for the transaction, or repeat the request id";
    return new FencepostError("UNAVAILABLE", detail, { txId, outcome: "unknown", retryAfterSeconds: 1 });
  }
}

/** The signer is known, and right now nobody may act for it: the node that could is leaving, or takes it up in a moment. */
export function betweenOwners(): FencepostError {
  return unavailable("this signer is between two owners; nothing was accepted");
}

export function unknownSigner(lane: Lane): FencepostError {
  return new FencepostError("UNKNOWN_SIGNER", `no live node holds the key of ${lane.signer}`);
}

export function outOfReach(): FencepostError {
  const detail = "a node that is embedded in another process acts for this signer, and takes no requests from outside";
  return new FencepostError("NOT_LEADER", detail, { ownerUrl: null, retryAfterSeconds: 1 });
}
