/**
 * Limits repeated log lines. The first lines of a kind in a time window are written, the others are only counted. The
 * count is logged when the window ends, so that nothing is dropped silently.
 */
import type { Clock } from "../../ports/clock.ts";
import type { LogMethod } from "./logger.ts";

const WINDOW_MS = 10_000;

export interface RepeatLimit<K> {
  readonly clock: Pick<Clock, "after">;
  /** Number of lines of one kind that are written per window. */
  readonly whole: number;
  /**
   * Maximum number of kinds of log lines. Kinds contain text from outside, so their number must be limited; beyond it,
   * a line counts as the kind `rest`.
   */
  readonly mostKinds: number;
  /** Called when the window ends, with the number of lines that were not written. */
  readonly say: (left: K & { readonly times: number }) => void;
}

type Keyed<K> = readonly [key: string, kind: K];

/** Makes a function that returns the kind of a line, or null if the line must not be written and is only counted. */
export function repeatLimit<K>({ clock, whole, mostKinds, say }: RepeatLimit<K>) {
  const kinds = new Map<string, { readonly kind: K; written: number; leftOut: number }>();
  const sum = () => {
    const all = [...kinds.values()];
    kinds.clear();
    for (const { kind, leftOut } of all) if (leftOut > 0) say({ ...kind, times: leftOut });
  };
  return (own: Keyed<K>, rest: Keyed<K>) => {
    const [key, kind] = kinds.has(own[0]) || kinds.size < mostKinds ? own : rest;
    if (kinds.size === 0) clock.after(WINDOW_MS, sum);
    const counted = kinds.get(key) ?? { kind, written: 0, leftOut: 0 };
    kinds.set(key, counted);
    if (counted.written === whole) counted.leftOut++;
    else counted.written++;
    return counted.leftOut > 0 ? null : kind;
  };
}

/** Kind of a log line: lines with the same event and message. */
interface LineKind {
  readonly event: string;
  readonly level: LogMethod;
  readonly message: string;
}

export type LeftOut = LineKind & { readonly times: number };

/**
 * Makes a function that returns true if a line must not be written. Beyond 100 kinds, all lines of an event count as
 * one kind.
 */
export function lineLimit(clock: Pick<Clock, "after">, say: (left: LeftOut) => void) {
  const take = repeatLimit<LineKind>({ clock, whole: 20, mostKinds: 100, say });
  return (line: LineKind) => take([JSON.stringify([line.event, line.message]), line], [line.event, line]) === null;
}
