/**
 * The audit of refusals, bounded: whoever is refused may come again without end, and must not fill the disk with it. The
 * first of a kind is said at once; those that follow it are counted, and said together when the stretch is over. Past so
 * many kinds in one stretch, all further ones are one kind. Each of them is counted by the metric all the same.
 */
import type { Clock } from "../../ports/clock.ts";
import type { Refusal } from "./options.ts";

/** `times`: how many there were since the last word of that kind. */
export type NotedRefusal = (Refusal | { readonly kinds: "others" }) & { readonly times: number };

const STRETCH_MS = 10_000;
const MOST_KINDS = 50;
const OTHERS = { kinds: "others" } as const;

interface Noted {
  readonly refusal: Refusal | typeof OTHERS;
  unsaid: number;
}

export function refusalLog(clock: Pick<Clock, "after">, say: (noted: NotedRefusal) => void) {
  const noted = new Map<string, Noted>();
  const sum = (): void => {
    const all = [...noted.values()];
    noted.clear();
    for (const { refusal, unsaid } of all) if (unsaid > 0) say({ ...refusal, times: unsaid });
  };
  const first = (kind: string, refusal: Refusal | typeof OTHERS): void => {
    if (noted.size === 0) clock.after(STRETCH_MS, sum);
    noted.set(kind, { refusal, unsaid: 0 });
    say({ ...refusal, times: 1 });
  };
  return (refusal: Refusal): void => {
    const { code, rule, key, method, route } = refusal;
    const kind = JSON.stringify([code, rule, key, method, route]);
    const isOne = noted.has(kind) || noted.size < MOST_KINDS;
    const known = noted.get(isOne ? kind : OTHERS.kinds);
    if (known !== undefined) known.unsaid++;
    else if (isOne) first(kind, refusal);
    else first(OTHERS.kinds, OTHERS);
  };
}
