/**
 * Bounds the log under a storm: of lines that say the same of many things, the first are written and the others counted. How many
 * were left out is said when the stretch is over, so that nothing happens of which the log is silent.
 */
import type { Clock } from "../../ports/clock.ts";

/** A kind of line, by what it says of whichever thing. */
export interface LineKind<L> {
  readonly event: string;
  readonly level: L;
  readonly message: string;
}

export type LeftOut<L> = LineKind<L> & { readonly times: number };

const STRETCH_MS = 10_000;
const WHOLE_LINES = 20;
/** Messages have words of others in them: past so many kinds, all of an event are one. */
const MOST_KINDS = 100;

interface Counted<L> {
  readonly kind: LineKind<L>;
  written: number;
  leftOut: number;
}

/** True: this line is not to be written; it is counted. */
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
