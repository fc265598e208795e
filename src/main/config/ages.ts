/** Retention ages: `90d`, a duration as elsewhere (`36h`), or a word for "without end". */
import { formatDuration, type Parser, parseDuration } from "./parsers.ts";
import type { Rule } from "./setting.ts";

const DAY_MS = 86_400_000;
const DAYS = /^([1-9]\d{0,3})d$/;

export type Age = `${number}${"d" | "h" | "m" | "s" | "ms"}`;

/** An age whose default is the word, as null. */
export function ageOr<const Word extends string>(word: Word, leastMs: number): Rule<number | null, Age | Word> {
  const parse: Parser<number | null, Age | Word> = (raw) => {
    const text = typeof raw === "string" ? raw.trim() : "";
    if (text === word) return { value: null };
    const days = DAYS.exec(text)?.[1];
    const value = days === undefined ? parseDuration(text) : Number(days) * DAY_MS;
    if (value === null) return { mistake: `is not an age (use 90d, 36h, or ${word})` };
    return value < leastMs ? { mistake: `is too short (at least ${formatAge(leastMs)}, or ${word})` } : { value };
  };
  return { parse, fallback: null, show: formatAge, unset: word };
}

export function formatAge(ms: number): string {
  return ms > 0 && ms % DAY_MS === 0 ? `${ms / DAY_MS}d` : formatDuration(ms);
}
