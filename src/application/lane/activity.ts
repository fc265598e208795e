import { TermOver } from "./term.ts";

/**
 * A promise for work in progress; null if there is nothing to wait for. Most checks find nothing to do, and with
 * thousands of lanes they should not each create a promise.
 */
export type Working = Promise<void> | null;

/** Runs the given functions one after the other. */
export function inTurn(...steps: readonly (() => Working)[]): Working {
  for (let at = 0; at < steps.length; at++) {
    const working = steps[at]?.() ?? null;
    if (working !== null) return working.then(() => inTurn(...steps.slice(at + 1)) ?? undefined);
  }
  return null;
}

/** Processes all items, at most `most` at a time: the next begins when one has ended. */
export async function sideBySide<T>(
  items: Iterable<T>,
  most: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const all = [...items];
  // All workers share one iterator, so no item is taken twice.
  const left = all.values();
  const worker = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: Math.max(0, Math.min(most, all.length)) }, worker));
}

/**
 * One kind of work that never runs twice at the same time. If it is requested while it runs, it runs once more
 * afterwards, however many requests arrived.
 */
export class Activity {
  private readonly work;
  private readonly onError;
  /** The promise of the last run that did not end synchronously. */
  private running: Working = null;
  /** "kicked": a run was requested, and begins now or after the current run. */
  private state: "at rest" | "busy" | "kicked" = "at rest";

  constructor(work: () => Working, onError: (error: unknown) => void) {
    this.work = work;
    this.onError = onError;
  }

  kick(): void {
    const isAtRest = this.state === "at rest";
    this.turn("kicked");
    if (!isAtRest) return;
    const working = this.next();
    if (working === null) this.turn("at rest");
    else this.running = this.run(working);
  }

  /** Resolves when a complete run that began after this call has ended. */
  now(): Promise<void> {
    this.kick();
    return this.settled();
  }

  /** Resolves when the work under way, if any, has ended. */
  async settled(): Promise<void> {
    while (this.state !== "at rest") await this.running;
  }

  private async run(first: Promise<void>) {
    for (let working: Working = first; working !== null; working = this.next()) {
      try {
        await working;
      } catch (error) {
        this.failed(error);
      }
    }
    this.turn("at rest");
  }

  /** Runs the work again as long as another run was requested and the work ends synchronously. */
  private next() {
    while (this.state === "kicked") {
      this.turn("busy");
      try {
        const working = this.work();
        if (working !== null) return working;
      } catch (error) {
        this.failed(error);
      }
    }
    return null;
  }

  private turn(state: Activity["state"]) {
    this.state = state;
  }

  private failed(error: unknown) {
    this.turn("busy");
    if (!(error instanceof TermOver)) this.onError(error);
  }
}

/** The activities of one lane. */
export interface LaneActivities {
  readonly signing: Activity;
  readonly broadcasting: Activity;
  readonly tending: Activity;
  readonly expiring: Activity;
}

/** Database writes of final outcomes that are in progress. The processing of new blocks does not wait for them. */
export class Outcomes {
  private readonly underWay = new Set<Promise<unknown>>();

  /** Adds a write that is in progress; `failed` is called with its error. */
  add(writing: Promise<unknown>, failed: (error: unknown) => void): void {
    const ended = writing.catch(failed).finally(() => this.underWay.delete(ended));
    this.underWay.add(ended);
  }

  /** Resolves when all outcomes are in the database: a read of settled rows before that would miss them. */
  async written(): Promise<void> {
    await Promise.all(this.underWay);
  }
}
