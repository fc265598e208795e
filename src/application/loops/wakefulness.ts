/**
 * Tells a pause of this process from the silence of others. A process that was stopped, starved of processor time or kept
 * busy by one long computation has read no messages: its lease may have run out and its transactions may have been ended by
 * the server's timers, although the database answers. Measured on the monotonic clock, by how late a regular beat comes.
 */
import { DatabaseSilent, type FencepostError } from "../../domain/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Created } from "../api.ts";
import { LeaseLapsed } from "../lane/between-owners.ts";
import { type FencepostApi, wrapped } from "../operations/calls.ts";

/** Shorter ones happen on any busy machine, and end no lease. */
const NOTABLE_MS = 250;
/** What fails for so long after a pause may have failed because of it. */
const RECENT_MS = 5_000;

interface Pause {
  readonly ms: number;
  readonly endedMs: number;
}

export class Wakefulness {
  private readonly clock;
  private readonly everyMs;
  private lastBeatMs: number | null = null;
  private pause: Pause | null = null;

  constructor(clock: Pick<Clock, "monotonicMs">, everyMs: number) {
    this.clock = clock;
    this.everyMs = everyMs;
  }

  /** To be called every `everyMs`. */
  beat(): void {
    const nowMs = this.clock.monotonicMs();
    const lateMs = this.lateMs(nowMs);
    if (lateMs >= NOTABLE_MS && lateMs >= this.recent(nowMs)) this.pause = { ms: lateMs, endedMs: nowMs };
    this.lastBeatMs = nowMs;
  }

  /** There are no more beats, and none is late. */
  rest(): void {
    this.lastBeatMs = null;
  }

  /** How long this process did not run, where that was a moment ago: the longest such time. 0: it runs as it should. */
  pausedMs(): number {
    const nowMs = this.clock.monotonicMs();
    // Requests that wait in the sockets may be read before the first timer: the beat has not come yet.
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

/** The same API, whose refusals name a pause of this process where that is what they come from. */
export function tellingPauses(api: FencepostApi, wakefulness: Pick<Wakefulness, "pausedMs">): FencepostApi {
  const tell = (fate: unknown): unknown => {
    if (!(fate instanceof DatabaseSilent || fate instanceof LeaseLapsed)) return fate;
    const pausedMs = wakefulness.pausedMs();
    return pausedMs === 0 ? fate : fate.afterPause(pausedMs);
  };
  const telling = wrapped(api, (call) => async (...asked) => {
    try {
      return await call(...asked);
    } catch (error) {
      throw tell(error);
    }
  });
  const each = <Asked extends readonly unknown[]>(
    make: (...asked: Asked) => ReturnType<FencepostApi["createBatch"]>,
  ) => {
    return async (...asked: Asked) => (await make(...asked)).map((fate) => tell(fate) as Created | FencepostError);
  };
  return { ...telling, createBatch: each(api.createBatch), createNamed: each(api.createNamed) };
}
