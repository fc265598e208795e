/** Admission of creates, and how many are in progress. */
import { DatabaseSilent, type FencepostError, queueFull, unavailable } from "../../domain/errors.ts";
import { bounded, type Clock } from "../../ports/clock.ts";
import type { Created } from "../api.ts";
import { LeaseLapsed } from "../lane/between-owners.ts";
import { type FencepostApi, wrapped } from "../operations/calls.ts";
import type { NodeSettings } from "../settings.ts";

interface ReceptionPorts {
  readonly admission: { readonly underWay: number; readonly perNode: number };
  readonly lease: { mayAct(): boolean };
  /** Number of other live nodes, and whether creates are forwarded to them. */
  readonly cluster: { readonly peers: number; readonly forwards: boolean };
  readonly wakefulness: Pick<Wakefulness, "pausedMs">;
}

export const DRAINING = "this node is shutting down";

export class Reception {
  private readonly ports;
  /** Number of creates that are not answered yet: a node that shuts down waits for them. */
  underWay = 0;
  draining = false;
  /** Number of callers that have sent requests which this node has not read yet. */
  waiting = 0;

  constructor(ports: ReceptionPorts) {
    this.ports = ports;
  }

  async counted<T>(creates: Promise<T>): Promise<T> {
    this.underWay++;
    try {
      return await creates;
    } finally {
      this.underWay--;
    }
  }

  /** True if there are other nodes and creates are forwarded to them. */
  private get isTakenElsewhere() {
    const { forwards, peers } = this.ports.cluster;
    return forwards && peers > 0;
  }

  /** The error for a create while this node shuts down and no other node can accept its creates; null otherwise. */
  turnedAway(): FencepostError | null {
    return this.draining && !this.isTakenElsewhere ? unavailable(DRAINING) : null;
  }

  /**
   * Whether creates are admitted right now. They are also admitted if this node cannot act itself but other nodes are
   * live, which then accept them.
   */
  admittance(): Admittance {
    const { admission, lease, cluster, wakefulness } = this.ports;
    const turnedAway = this.turnedAway();
    if (turnedAway !== null) return { kind: "closed", refusal: () => turnedAway };
    if (admission.underWay >= admission.perNode && !this.isTakenElsewhere)
      return { kind: "closed", refusal: queueFull };
    if (lease.mayAct() || cluster.peers > 0) return OPEN;
    const pausedMs = wakefulness.pausedMs();
    return { kind: pausedMs === 0 ? "closed" : "soon", refusal: () => new LeaseLapsed(pausedMs) };
  }
}

const GRACE_MS = 1_000;

/**
 * The start-up phase of a node: a previous owner of its lanes may be dead, but not detected as dead yet. Until it is
 * detected, creates may be refused because the dead node still counts as the owner, so this node reports that it is not
 * ready.
 */
export class SettlingIn {
  private readonly clock;
  private readonly latestMs;
  private readonly settled = new AbortController();

  constructor(clock: Clock, { durationMs, clockSkewMs }: NodeSettings["lease"]) {
    this.clock = clock;
    this.latestMs = durationMs + clockSkewMs + GRACE_MS;
  }

  get isOver(): boolean {
    return this.settled.signal.aborted;
  }

  /** Ends the start-up phase: free lanes have been claimed, so creates are accepted here or by another live node. */
  end(): void {
    this.settled.abort();
  }

  /** Resolves when the start-up phase is over; at the latest when the previous owner's lease must have expired. */
  async whenOver(): Promise<void> {
    const over = new Promise<void>((resolve) => {
      this.settled.signal.addEventListener("abort", () => resolve(), { once: true });
      if (this.isOver) resolve();
    });
    await bounded(this.clock, over, this.clock.monotonicMs() + this.latestMs);
    this.end();
  }
}

/**
 * Detects that this process itself was paused, to distinguish that from other systems that do not answer. A process
 * that was stopped, starved of processor time or blocked by one long computation has read no messages. So its lease may
 * have expired, and the server's timers may have ended its transactions, although the database answers. Measured on the
 * monotonic clock, by how late a regular beat is.
 */

/** Shortest pause of the process that counts: shorter ones happen on any busy machine, and end no lease. */
const NOTABLE_MS = 250;
/** Time in ms after a pause within which a failure may be a consequence of the pause. */
const RECENT_MS = 5_000;

export class Wakefulness {
  private readonly clock;
  private readonly everyMs;
  private lastBeatMs: number | null = null;
  private pause: { readonly ms: number; readonly endedMs: number } | null = null;

  constructor(clock: Pick<Clock, "monotonicMs">, everyMs: number) {
    this.clock = clock;
    this.everyMs = everyMs;
  }

  /** Records a regular beat; must be called every `everyMs`. */
  beat(): void {
    const nowMs = this.clock.monotonicMs();
    const lateMs = this.lateMs(nowMs);
    if (lateMs >= NOTABLE_MS && lateMs >= this.recent(nowMs)) this.pause = { ms: lateMs, endedMs: nowMs };
    this.lastBeatMs = nowMs;
  }

  /** Stops the measurement: no more beats follow, so a missing beat must not count as late. */
  rest(): void {
    this.lastBeatMs = null;
  }

  /** Longest recent time in ms during which this process did not run; 0 if it runs normally. */
  pausedMs(): number {
    const nowMs = this.clock.monotonicMs();
    // After a pause, requests waiting in the sockets may be read before the first timer fires. So a beat that is
    // overdue now counts, too.
    const lateMs = this.lateMs(nowMs);
    return Math.round(Math.max(lateMs >= NOTABLE_MS ? lateMs : 0, this.recent(nowMs)));
  }

  private lateMs(nowMs: number) {
    return this.lastBeatMs === null ? 0 : nowMs - this.lastBeatMs - this.everyMs;
  }

  private recent(nowMs: number) {
    return this.pause !== null && nowMs - this.pause.endedMs < RECENT_MS ? this.pause.ms : 0;
  }
}

/** Wraps the API: if this process was paused and therefore refuses a request, the error mentions the pause. */
export function reportingPauses(api: FencepostApi, wakefulness: Pick<Wakefulness, "pausedMs">): FencepostApi {
  const report = (result: unknown): unknown => {
    if (!(result instanceof DatabaseSilent || result instanceof LeaseLapsed)) return result;
    const pausedMs = wakefulness.pausedMs();
    return pausedMs === 0 ? result : result.afterPause(pausedMs);
  };
  const methodsReporting = wrapped(api, (call) => async (...asked) => {
    try {
      return await call(...asked);
    } catch (error) {
      throw report(error);
    }
  });
  const each = <Asked extends readonly unknown[]>(
    make: (...asked: Asked) => ReturnType<FencepostApi["createBatch"]>,
  ) => {
    return async (...asked: Asked) =>
      (await make(...asked)).map((result) => report(result) as Created | FencepostError);
  };
  return { ...methodsReporting, createBatch: each(api.createBatch), createNamed: each(api.createNamed) };
}

/** Whether a create is admitted. Decided before its body is read, so the check must cost next to nothing. */
export type Admittance =
  | { readonly kind: "open" }
  /**
   * The node will admit creates in a moment, so a caller that can wait need not retry. `refusal`: the error for a
   * caller that has waited long enough.
   */
  | { readonly kind: "soon"; readonly refusal: () => FencepostError }
  | { readonly kind: "closed"; readonly refusal: () => FencepostError };

export const OPEN: Admittance = { kind: "open" };
