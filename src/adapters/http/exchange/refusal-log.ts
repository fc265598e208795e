/**
 * Logs refusals without filling the disk: a refused caller may repeat for ever. The first refusal of a kind is logged
 * at once. Later ones are counted, and logged together at the end of the interval. Beyond 50 kinds per interval the
 * rest counts as one kind. The metric counts every one.
 */
import type { Clock } from "../../../ports/clock.ts";
import type { Refusal } from "./options.ts";

/** `times`: refusals of this kind since the last line about it. */
export type NotedRefusal = (Refusal | { readonly kinds: "others" }) & { readonly times: number };

const INTERVAL_MS = 10_000;
const MOST_KINDS = 50;
const OTHERS = { kinds: "others" } as const;

interface Noted {
  readonly refusal: Refusal | typeof OTHERS;
  unlogged: number;
}

export function refusalLog(clock: Pick<Clock, "after">, log: (noted: NotedRefusal) => void) {
  const noted = new Map<string, Noted>();
  const sum = (): void => {
    const all = [...noted.values()];
    noted.clear();
    for (const { refusal, unlogged } of all) if (unlogged > 0) log({ ...refusal, times: unlogged });
  };
  const first = (kind: string, refusal: Refusal | typeof OTHERS): void => {
    if (noted.size === 0) clock.after(INTERVAL_MS, sum);
    noted.set(kind, { refusal, unlogged: 0 });
    log({ ...refusal, times: 1 });
  };
  return (refusal: Refusal): void => {
    const { code, rule, key, method, route } = refusal;
    const kind = JSON.stringify([code, rule, key, method, route]);
    const isOne = noted.has(kind) || noted.size < MOST_KINDS;
    const known = noted.get(isOne ? kind : OTHERS.kinds);
    if (known !== undefined) known.unlogged++;
    else if (isOne) first(kind, refusal);
    else first(OTHERS.kinds, OTHERS);
  };
}
