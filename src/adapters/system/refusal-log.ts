/**
 * Logs refused requests without filling the disk, because a refused caller may repeat forever. The first refusal of a
 * kind is logged at once. Later ones are counted, and logged together at the end of the window. Beyond 50 kinds per
 * window the rest counts as one kind. The metric counts every refusal.
 */
import { type RepeatLimit, repeatLimit } from "./line-limit.ts";

const OTHERS = { kinds: "others" } as const;

/** A logged refusal. `times`: number of refusals of this kind since the last line about it. */
export type NotedRefusal<R> = (R | typeof OTHERS) & { readonly times: number };

export function refusalLog<R>(clock: RepeatLimit<R>["clock"], log: (noted: NotedRefusal<R>) => void) {
  const take = repeatLimit<R | typeof OTHERS>({ clock, whole: 1, mostKinds: 50, say: log });
  return (refusal: R) => {
    const kind = take([JSON.stringify(refusal), refusal], [OTHERS.kinds, OTHERS]);
    if (kind !== null) log({ ...kind, times: 1 });
  };
}
