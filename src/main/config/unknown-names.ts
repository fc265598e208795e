import { SETTING_KEYS, SETTINGS } from "./schema.ts";
import type { Entry, Mistakes, Sources } from "./sources.ts";

const PREFIX = "FENCEPOST_";
const VARIABLES: ReadonlySet<string> = new Set(SETTING_KEYS.map((key) => SETTINGS[key].variable));

/** A misspelt variable would otherwise be a setting that silently does not hold. */
export function refuseUnknownVariables(variables: Sources["variables"], mistakes: Mistakes): void {
  const ours = Object.keys(variables).filter((name) => name.toUpperCase().startsWith(PREFIX));
  for (const name of ours.sort()) {
    if (!VARIABLES.has(name)) mistakes.add(name, `is not a setting${didYouMean(name, VARIABLES)}`);
  }
}

/** `name`: as a message calls the object: the file, or a chain in it. */
export function refuseUnknownKeys(
  { name, entry, known }: { readonly name: string; readonly entry: Entry; readonly known: readonly string[] },
  mistakes: Mistakes,
): void {
  for (const key of Object.keys(entry)) {
    if (known.includes(key)) continue;
    const named = `${name}: ${key.replace(/\p{Cc}+/gu, " ").slice(0, 64)}`;
    mistakes.add(named, `is not a setting${didYouMean(key, known)}`);
  }
}

/** The known name that is probably meant; nothing where none is near. */
function didYouMean(name: string, known: Iterable<string>): string {
  const wanted = normalised(name);
  const judged = [...known].map((name) => ({ name, distance: editDistance(wanted, normalised(name)) }));
  const [best] = judged.sort((one, other) => one.distance - other.distance);
  // A third of the letters may be wrong; beyond that a guess is noise.
  const isNear = best !== undefined && best.distance <= Math.max(2, Math.floor(wanted.length / 3));
  return isNear ? ` (did you mean ${best.name}?)` : "";
}

/** The prefix is no evidence: every variable has it. Casing and separators are how the two spellings differ. */
function normalised(name: string): string {
  return name.replace(/^FENCEPOST_|[_-]/gi, "").toLowerCase();
}

/** Levenshtein, one row at a time. Long input is cut: nothing known is that long. */
function editDistance(a: string, b: string): number {
  const wanted = a.slice(0, 64);
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...wanted].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return (row[b.length] ?? 0) + (a.length - wanted.length);
}
