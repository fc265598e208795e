import { FencepostError } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { PeerUnreachable, Sending } from "../../ports/peers.ts";
import { BetweenOwners, PutOff } from "../lane/between-owners.ts";

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

/** Refusals that describe the node that was asked, not the request. */
const ABOUT_THE_NODE: ReadonlySet<string> = new Set([
  ...["UNAVAILABLE", "QUEUE_FULL", "QUOTA_EXCEEDED", "INTERNAL"],
  ...["UNKNOWN_SIGNER", "UNKNOWN_CHAIN"],
]);

/** One request under way between nodes: the node to ask next, and the items without a result. */
export class Delivery<T> {
  readonly request: ForwardedRequest<T>;
  readonly visited = new Set<string>();
  open: readonly number[];
  stop: string | null;
  stops = 0;
  /** The last node that the request did not reach. */
  unreached: string | null = null;
  /** A node may have acted, and its answer was lost: the next node that is asked must look for the request first. */
  repeated = false;
  /** Nothing more may be tried. */
  over = false;
  private readonly results: (Result<T> | undefined)[];
  private deadlineMs: number;
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

  /** A process that was paused has used its callers' time up without asking anybody: once, it gets a little more. */
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
