/**
 * Takes creates of one lane to whoever owns it. The guess costs nothing: this node where it holds the lane, else the
 * owner it last heard of, else the member that placement favours. A wrong guess is answered with the owner's name and
 * costs one more hop; a node that was forwarded to never forwards again.
 *
 * Reads: membership. Writes: nothing. Invariants: I10 (any node may be asked), I5 (the id is given here, so a create whose
 * answer was lost is repeated as the same transaction). A crash leaves what the owner did; the caller's repeat finds it.
 */
import { FencepostError, unavailable } from "../../domain/errors.ts";
import { type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import { type ForwardedCreate, PeerUnreachable, type Peers } from "../../ports/peers.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import type { Created } from "../api.ts";
import type { Membership } from "./membership.ts";

export type Fate = Created | FencepostError;

export interface RoutePorts {
  readonly peers: Pick<Peers, "create">;
  readonly membership: Membership;
  readonly telemetry: Telemetry;
  readonly selfUrl: string;
  readonly holds: (lane: Lane) => boolean;
  /** True where this node may acquire the lane itself. */
  readonly canServe: (lane: Lane) => boolean;
}

/** Creates of one lane, and how this node would do them itself. */
export interface Errand {
  readonly lane: Lane;
  readonly creates: readonly ForwardedCreate[];
  readonly locally: (which: readonly number[]) => Promise<readonly Fate[]>;
}

const MOST_STOPS = 4;

export class Router {
  private readonly ports: RoutePorts;
  /** Owners that other nodes named; forgotten as soon as one of them denies it. */
  private readonly owners = new Map<LaneKey, string>();

  constructor(ports: RoutePorts) {
    this.ports = ports;
  }

  async run(errand: Errand): Promise<readonly Fate[]> {
    const journey = new Journey(errand, this.firstStop(errand.lane));
    while (journey.open.length > 0 && journey.stop !== null && journey.stops < MOST_STOPS) {
      journey.stops++;
      const fates = await this.visit(journey);
      if (fates !== null) this.settle(journey, fates);
    }
    this.report(journey);
    return journey.fates.map((fate) => fate ?? journey.giveUp());
  }

  private firstStop(lane: Lane): string | null {
    const { holds, selfUrl, membership, canServe } = this.ports;
    if (holds(lane)) return selfUrl;
    const known = this.owners.get(laneKey(lane));
    if (known !== undefined && membership.find(known) !== null) return known;
    return membership.favourite(lane)?.url ?? (canServe(lane) ? selfUrl : null);
  }

  /** Null: there was no answer, and the journey knows where to try next. */
  private async visit(journey: Journey): Promise<readonly Fate[] | null> {
    const { errand, open } = journey;
    const stop = journey.stop as string;
    if (stop === this.ports.selfUrl) return errand.locally(open);
    try {
      const creates = open.map((index) => errand.creates[index] as ForwardedCreate);
      return await this.ports.peers.create(stop, creates, journey.repeated);
    } catch (error) {
      if (!(error instanceof PeerUnreachable)) throw error;
      this.owners.delete(laneKey(errand.lane));
      journey.failed(error, this.nextStop(journey));
      return null;
    }
  }

  /** After silence: the same node once more where it may have acted, else another that can serve the lane. */
  private nextStop(journey: Journey): string | null {
    const { lane } = journey.errand;
    const others = this.ports.membership.candidates(lane).map(({ url }) => url);
    const fresh = [...others, ...(this.ports.canServe(lane) ? [this.ports.selfUrl] : [])];
    return fresh.find((url) => !journey.visited.has(url)) ?? null;
  }

  /** Notes fates; what was refused because another node leads goes on to that node. */
  private settle(journey: Journey, fates: readonly Fate[]): void {
    const { lane } = journey.errand;
    const turnedAway: number[] = [];
    let owner: string | null = null;
    journey.open.forEach((index, at) => {
      const fate = fates[at] as Fate;
      journey.fates[index] = fate;
      if (!(fate instanceof FencepostError && fate.code === "NOT_LEADER")) return;
      turnedAway.push(index);
      owner = fate.extras.ownerUrl ?? owner;
    });
    const stop = journey.stop as string;
    journey.visited.add(stop);
    if (turnedAway.length === 0) {
      if (stop !== this.ports.selfUrl) this.owners.set(laneKey(lane), stop);
      journey.finish();
      return;
    }
    this.owners.delete(laneKey(lane));
    journey.redirected(turnedAway, owner ?? this.nextStop(journey));
  }

  private report(journey: Journey): void {
    if (journey.stops === 1 && journey.visited.has(this.ports.selfUrl)) return;
    const result = journey.open.length > 0 ? "failed" : journey.stops === 1 ? "hit" : "miss";
    this.ports.telemetry.emit({ type: "forward", lane: journey.errand.lane, result, stops: journey.stops });
  }
}

/** One errand under way: where it goes next, and what is still open. */
class Journey {
  readonly errand: Errand;
  readonly fates: (Fate | undefined)[];
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

  finish(): void {
    this.open = [];
  }

  redirected(open: readonly number[], stop: string | null): void {
    this.open = open;
    this.stop = stop !== null && this.visited.has(stop) ? null : stop;
  }

  failed(error: PeerUnreachable, next: string | null): void {
    const stop = this.stop as string;
    // It may have acted: ask it once more before anybody else, because the answer is there.
    const askAgain = !error.neverSent && !this.repeated;
    this.repeated ||= !error.neverSent;
    if (!askAgain) this.visited.add(stop);
    this.stop = askAgain ? stop : next === stop ? null : next;
  }

  giveUp(): FencepostError {
    if (this.stop === null && this.stops === 0) {
      return new FencepostError("UNKNOWN_SIGNER", `no live node holds the key of ${this.errand.lane.signer}`);
    }
    const txId = this.errand.creates[0]?.txId;
    if (!this.repeated || txId === undefined) return unavailable("no node that can act for this signer answers; nothing was accepted");
    return new FencepostError("UNAVAILABLE", "the node that acts for this signer did not answer; ask for the transaction, or repeat with the same request id", {
      txId,
      outcome: "unknown",
      retryAfterSeconds: 1,
    });
  }
}
