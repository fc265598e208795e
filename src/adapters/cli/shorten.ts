/** Shortens texts to the width of a terminal: ids in the middle, times to ages, prose at its end or over lines. */

/** Shortens an id to `size` characters and keeps both ends, because many ids of one kind begin alike. */
export function middle(text: string, size: number): string {
  if (text.length <= size) return text;
  const prefix = text.startsWith("0x") ? 2 : 0;
  const tail = Math.floor((size - 1 - prefix) / 2);
  return `${text.slice(0, size - 1 - tail)}…${text.slice(text.length - tail)}`;
}

/** Shortens an address or hash for running text, for example to `0xf39F…2266`. */
export function short(hex: string | null): string {
  return hex === null ? "-" : hex.length <= 14 ? hex : middle(hex, 11);
}

export function cut(text: string, size: number): string {
  return text.length <= size ? text : `${text.slice(0, Math.max(0, size - 1))}…`;
}

/**
 * Breaks a text into lines of at most `size` characters. `long` shortens a word that is longer; by default it stays
 * whole, because it may be an id to copy.
 */
export function wrapped(
  text: string,
  size: number,
  long: (word: string, size: number) => string = (word) => word,
): readonly string[] {
  if (text.length <= size) return [text];
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ").map((each) => long(each, size))) {
    if (line !== "" && line.length + 1 + word.length > size) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Prose behind a mark; later lines are indented by the width of the mark. */
export function indented(mark: string, text: string, { width }: { readonly width: number | null }): string {
  if (width === null) return `${mark}${text}`;
  return `${mark}${wrapped(text, width - mark.length).join(`\n${" ".repeat(mark.length)}`)}`;
}

/** Age of a timestamp, or the time until it: `4 s ago`, `in 2 min`. Any other text stays as it is. */
export function timeInWords(text: string, now: Date): string {
  const then = new Date(text);
  if (!/^\d{4}-\d\d-\d\dT/.test(text) || Number.isNaN(then.getTime())) return text;
  const seconds = Math.abs(then.getTime() - now.getTime()) / 1_000;
  const [size, unit] = UNITS.find(([each]) => seconds >= each) ?? [1, "s"];
  const span = `${Math.floor(seconds / size)} ${unit}`;
  return then > now ? `in ${span}` : `${span} ago`;
}

const UNITS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
] as const;

/** A timestamp, with its age for people at a terminal. */
export function dated(text: string, { now, width }: { readonly now: Date; readonly width: number | null }): string {
  return width === null ? text : `${text} (${timeInWords(text, now)})`;
}

/** Age of something that has happened. A clock that is ahead of this one does not move it into the future. */
export function ageOf(at: string, now: Date): string {
  const then = new Date(at);
  return timeInWords(at, then > now ? then : now);
}

/** Age of a figure that was read at `asOf`, to put behind it: ` (4 s ago)`. Without a terminal too: it may be stale. */
export function agoOf(asOf: string | null | undefined, { now }: { readonly now: Date }): string {
  return asOf == null ? "" : ` (${ageOf(asOf, now)})`;
}

/** Removes control characters, which could move the terminal's cursor or overwrite its text. */
export function inert(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ");
}
