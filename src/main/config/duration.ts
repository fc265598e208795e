const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const DURATION = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h)$/;
const LONGEST_MS = 365 * 24 * 3_600_000;

/** Whole milliseconds, or null where the text is no duration. A bare `0` needs no unit. */
export function parseDuration(text: string): number | null {
  if (text === "0") return 0;
  const match = DURATION.exec(text);
  if (match === null) return null;
  const ms = Number(match[1]) * (UNITS_MS[match[2] ?? ""] ?? Number.NaN);
  const whole = Math.round(ms);
  const isWhole = Math.abs(ms - whole) < 1e-6;
  return isWhole && whole <= LONGEST_MS ? whole : null;
}

/** The shortest form that reads back as the same duration. */
export function formatDuration(ms: number): string {
  const unit = ["h", "m", "s"].find((one) => ms > 0 && ms % (UNITS_MS[one] ?? Number.NaN) === 0) ?? "ms";
  return `${ms / (UNITS_MS[unit] ?? 1)}${unit}`;
}
