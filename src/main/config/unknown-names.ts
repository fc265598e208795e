import { NOT_YET_SUPPORTED, SETTING_KEYS, SETTINGS } from "./schema.ts";
import type { Entry, Mistakes } from "./sources.ts";
import { nearest } from "./suggest.ts";

const PREFIX = "FENCEPOST_";
const VARIABLES: ReadonlySet<string> = new Set(SETTING_KEYS.map((key) => SETTINGS[key].variable));
const VARIABLES_TO_COME: ReadonlySet<string> = new Set(NOT_YET_SUPPORTED.values());
const TO_COME = "is not supported yet; remove it";

/** A misspelt variable would otherwise be a setting that silently does not hold. */
export function refuseUnknownVariables(
  variables: Readonly<Record<string, string | undefined>>,
  mistakes: Mistakes,
): void {
  const ours = Object.keys(variables).filter((name) => name.toUpperCase().startsWith(PREFIX));
  for (const name of ours.sort()) {
    if (VARIABLES.has(name)) continue;
    mistakes.add(name, VARIABLES_TO_COME.has(name) ? TO_COME : `is not a setting${didYouMean(name, VARIABLES)}`);
  }
}

export interface NamedEntry {
  /** As a message calls the object: the file, or a chain in it. */
  readonly name: string;
  readonly entry: Entry;
  readonly known: readonly string[];
}

export function refuseUnknownKeys({ name, entry, known }: NamedEntry, mistakes: Mistakes): void {
  for (const key of Object.keys(entry)) {
    if (known.includes(key)) continue;
    const phrase = NOT_YET_SUPPORTED.has(key) ? TO_COME : `is not a setting${didYouMean(key, known)}`;
    mistakes.add(`${name}: ${printable(key)}`, phrase);
  }
}

function didYouMean(name: string, known: Iterable<string>): string {
  const suggestion = nearest(name, known);
  return suggestion === null ? "" : ` (did you mean ${suggestion}?)`;
}

function printable(key: string): string {
  return key.replace(/\p{Cc}+/gu, " ").slice(0, 64);
}
