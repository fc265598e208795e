import { nearestName } from "../../domain/text/near-names.ts";
import { SETTING_KEYS, SETTINGS } from "./schema.ts";
import type { Entry, Mistakes, Sources } from "./sources.ts";

const PREFIX = "FENCEPOST_";
const VARIABLES: ReadonlySet<string> = new Set(SETTING_KEYS.map((key) => SETTINGS[key].variable));

/** Refuses misspelt variables: they would be ignored silently. */
export function refuseUnknownVariables(variables: Sources["variables"], mistakes: Mistakes): void {
  const ours = Object.keys(variables).filter((name) => name.toUpperCase().startsWith(PREFIX));
  for (const name of ours.sort()) {
    if (!VARIABLES.has(name)) mistakes.add(name, `is not a setting${didYouMean(name, VARIABLES)}`);
  }
}

/** `name`: the object's name in messages (the file, or a chain in it). */
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

function didYouMean(name: string, known: Iterable<string>): string {
  const near = nearestName(name, known, normalised);
  return near === null ? "" : ` (did you mean ${near}?)`;
}

/** Compares without the common prefix, casing and separators: the spellings of variables and keys differ in those. */
function normalised(name: string): string {
  return name.replace(/^FENCEPOST_|[_-]/gi, "").toLowerCase();
}
