/**
 * Limits repeated log lines. Of lines with the same event and message, the first in a window are written and the others
 * counted. The count is logged when the window ends, so that nothing is dropped silently.
 */
import type { Clock } from "../../ports/clock.ts";

/** Lines with the same event and message. */
export interface LineKind<L> {
  readonly event: string;
  readonly level: L;
  readonly message: string;
}

export type LeftOut<L> = LineKind<L> & { readonly times: number };

const STRETCH_MS = 10_000;
const WHOLE_LINES = 20;
/** Messages contain foreign text: beyond this many kinds, all lines of an event count as one kind. */
const MOST_KINDS = 100;

interface Counted<L> {
  readonly kind: LineKind<L>;
  written: number;
  leftOut: number;
}

/** Returns true if the line must not be written; then it is counted. */
export function lineLimit<L>(clock: Pick<Clock, "after">, say: (left: LeftOut<L>) => void) {
  const kinds = new Map<string, Counted<L>>();
  const sum = (): void => {
    const all = [...kinds.values()];
    kinds.clear();
    for (const { kind, leftOut } of all) if (leftOut > 0) say({ ...kind, times: leftOut });
  };
  return (kind: LineKind<L>): boolean => {
    const { event, message } = kind;
    const own = JSON.stringify([event, message]);
    const key = kinds.has(own) || kinds.size < MOST_KINDS ? own : event;
    if (kinds.size === 0) clock.after(STRETCH_MS, sum);
    const counted = kinds.get(key) ?? { kind, written: 0, leftOut: 0 };
    kinds.set(key, counted);
    if (counted.written < WHOLE_LINES) counted.written++;
    else counted.leftOut++;
    return counted.leftOut > 0;
  };
}
