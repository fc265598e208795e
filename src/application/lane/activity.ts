import { TermOver } from "./term.ts";

/** Null: there was nothing to wait for. Most looks find nothing to do, and a thousand lanes make no promises of that. */
export type Working = Promise<void> | null;

/** Runs the steps one after the other. */
export function inTurn(...steps: readonly (() => Working)[]): Working {
  for (let at = 0; at < steps.length; at++) {
    const working = steps[at]?.() ?? null;
    if (working !== null) return working.then(() => inTurn(...steps.slice(at + 1)) ?? undefined);
  }
  return null;
}

/** Works on all items, at most `most` at once: the next begins when one of them has ended. */
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
 * One kind of work that never overlaps itself. A kick while it runs means "look again afterwards": however many kicks
 * arrive, none is lost and none queues up.
 */
export class Activity {
  private readonly work;
  private readonly onError;
  /** The last that had to be waited for. */
  private running: Working = null;
  /** "kicked": it is to look, or to look again once it has ended. */
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

  /** Resolves when it has run, from its beginning, after this call. */
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

  /** Works for as long as it was kicked and nothing has to be waited for. */
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

/** The work of one lane. */
export interface LaneActivities {
  readonly signing: Activity;
  readonly broadcasting: Activity;
  readonly tending: Activity;
  readonly expiring: Activity;
}

/** Outcomes that a pass has decided, and does not wait for. */
export class Outcomes {
  private readonly underWay = new Set<Promise<unknown>>();

  /** `failed` receives errors on the way. */
  add(writing: Promise<unknown>, failed: (error: unknown) => void): void {
    const ended = writing.catch(failed).finally(() => this.underWay.delete(ended));
    this.underWay.add(ended);
  }

  /** Until they are in the database: before, a read for settled rows would find none. */
  async written(): Promise<void> {
    await Promise.all(this.underWay);
  }
}
