import { FencepostError } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { PeerUnreachable, Telling } from "../../ports/peers.ts";
import { BetweenOwners, PutOff } from "../lane/between-owners.ts";

export type Fate<T> = T | FencepostError;

/** Something that only the owner of one lane can do: several items of it, each with a fate of its own. */
export interface Errand<T> {
  readonly lane: Lane;
  readonly items: number;
  /** Told again after silence it is still done once. Where not, silence is the end of it. */
  readonly repeatable: boolean;
  /** By this node, which may acquire the lane for it. */
  locally(which: readonly number[], repeat: boolean): Promise<readonly Fate<T>[]>;
  /** By another node. Throws `PeerUnreachable`. */
  remotely(url: string, which: readonly number[], telling: Telling): Promise<readonly Fate<T>[]>;
  /** What a caller is told of an item that some node may have done, unheard. */
  unknown(item: number): FencepostError;
}

/** Refusals that say how a node is, or what it knows of, and nothing about the request. */
const ABOUT_THE_NODE: ReadonlySet<string> = new Set([
  ...["UNAVAILABLE", "QUEUE_FULL", "QUOTA_EXCEEDED", "INTERNAL"],
  ...["UNKNOWN_SIGNER", "UNKNOWN_CHAIN"],
]);

/** One errand under way: where it goes next, and what is still open. */
export class Journey<T> {
  readonly errand: Errand<T>;
  readonly visited = new Set<string>();
  open: readonly number[];
  stop: string | null;
  stops = 0;
  /** The last one that could not even be told. */
  unreached: string | null = null;
  /** A node may have acted, and its answer was lost: the next node that is asked must look for the request first. */
  repeated = false;
  /** Nothing more may be tried. */
  over = false;
  private readonly fates: (Fate<T> | undefined)[];
  private deadlineMs: number;
  private isProlonged = false;

  constructor(errand: Errand<T>, stop: string | null, deadlineMs: number) {
    this.errand = errand;
    this.fates = Array.from({ length: errand.items }, () => undefined);
    this.open = Array.from({ length: errand.items }, (_, index) => index);
    this.stop = stop;
    this.deadlineMs = deadlineMs;
  }

  goesOn(nowMs: number): boolean {
    return this.open.length > 0 && !this.over && nowMs < this.deadlineMs;
  }

  /** A process that stood still has used its callers' time up, and not been anywhere: once, there is a little more. */
  prolong(nowMs: number, moreMs: number): void {
    if (this.isProlonged || nowMs < this.deadlineMs) return;
    this.isProlonged = true;
    this.deadlineMs = nowMs + moreMs;
  }

  /** What one asking may take. Half of what is left, so that after silence there is as much again for the repeat. */
  withinMs(nowMs: number): number {
    const leftMs = this.deadlineMs - nowMs;
    return this.repeated ? leftMs : leftMs / 2;
  }

  /** Keeps fates; what was refused because another node leads stays open. Returns that node, where it was named. */
  note(fates: readonly Fate<T>[]): string | null {
    let owner: string | null = null;
    this.visited.add(this.stop as string);
    if (this.stop === this.unreached) this.unreached = null;
    this.open = this.open.filter((index, at) => {
      const fate = fates[at] as Fate<T>;
      this.fates[index] = fate;
      if (!isElsewhere(fate)) return false;
      this.repeated ||= fate.extras.outcome === "unknown";
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

  /**
   * Silence. A node that may have acted and is live is asked once more before any other, because it may have the answer;
   * one that was never reached is passed over.
   */
  unanswered({ neverSent }: PeerUnreachable, next: { readonly isLive: boolean; readonly other: () => string | null }) {
    const again = !neverSent && !this.repeated && next.isLive;
    this.repeated ||= !neverSent;
    this.over = !neverSent && !this.errand.repeatable;
    if (neverSent) this.unreached = this.stop;
    if (again) return;
    this.visited.add(this.stop as string);
    this.stop = next.other();
  }

  /** This node itself may not act for now: where there is no other, waiting leads nowhere. */
  isWaitingForItself(): boolean {
    return this.open.some((index) => {
      const fate = this.fates[index];
      return fate instanceof BetweenOwners && !(fate instanceof PutOff);
    });
  }

  /** A node that accepted nothing speaks for itself: not for the one that was asked before and did not answer. */
  private isInDoubt(fate: unknown): boolean {
    return this.repeated && fate instanceof FencepostError && ABOUT_THE_NODE.has(fate.code);
  }

  conclude(nobodyActs: () => FencepostError): readonly Fate<T>[] {
    const open = new Set(this.open);
    return this.fates.map((fate, index) => {
      if (!open.has(index) && !this.isInDoubt(fate)) return fate as Fate<T>;
      if (this.repeated) return this.errand.unknown(index);
      return fate instanceof BetweenOwners ? fate : nobodyActs();
    });
  }
}

function isElsewhere(fate: unknown): fate is FencepostError {
  return fate instanceof BetweenOwners || (fate instanceof FencepostError && fate.code === "NOT_LEADER");
}

/** Of all the nodes that there are, and nothing was accepted. */
export class NobodyActs extends FencepostError {
  constructor(unreached: string | null) {
    const why =
      unreached === null
        ? "no node can act for this signer right now"
        : `the node at ${unreached}, which may act for this signer, cannot be reached`;
    super("UNAVAILABLE", `${why}; nothing was accepted`, { retryAfterSeconds: 1 });
  }
}
