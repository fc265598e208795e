import { nearestName } from "../../domain/text/near-names.ts";
import { SETTING_KEYS, SETTINGS, type SettingKey } from "./schema.ts";
import type { Setting } from "./setting.ts";

/** Commands that read the configuration. `config` only prints it, and requires no setting. */
export type Command = "dev" | "start" | "migrate" | "config";

/** Where a setting's value comes from. Each source overrides those listed before it. */
export type Origin = "default" | "file" | "chain" | "environment" | "flag";

export interface Sources {
  readonly command: Command;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly file: ConfigFile | null;
  readonly flags: Flags;
  /** True if the caller has signers that are not settings: accounts of viem, passed to the library. */
  readonly hasOtherSigners?: boolean;
}

export interface ConfigFile {
  /** Name of the configuration file in messages. */
  readonly name: string;
  /** Path of the configuration file; absent in the library, which passes an object. */
  readonly path?: string;
  readonly content: unknown;
}

export type Flags = Readonly<Partial<Record<SettingKey, unknown>>>;

/** An object read from the configuration file, not validated yet. */
export type Entry = Readonly<Record<string, unknown>>;

export interface Given {
  readonly origin: Origin;
  readonly name: string;
  readonly raw: unknown;
}

/** Collects all mistakes of a configuration, so that people can correct them all at once. */
export class Mistakes {
  readonly lines: string[] = [];

  add(name: string, phrase: string): void {
    this.lines.push(`${name}: ${phrase}`);
  }

  refuse(key: SettingKey, phrase: string): void {
    this.add(SETTINGS[key].variable, phrase);
  }

  /** Returns the parsed value, or null after adding a line about the mistake. */
  judge<T>(setting: Pick<Setting<T>, "parse" | "secrets">, given: Pick<Given, "name" | "raw">): { value: T } | null {
    const parsed = setting.parse(given.raw);
    if ("value" in parsed) return { value: parsed.value };
    this.add(given.name, `${setting.secrets !== undefined ? "the value" : quote(given.raw)} ${parsed.mistake}`);
    return null;
  }
}

const LONGEST_QUOTE = 24;
/** Values that may be quoted: a number, a number with a unit, or a word, as in usual typing errors. */
const PLAIN_WORD = /^(?:[+-]?\d{1,12}[a-z]{0,3}|[a-z]{1,12})$/i;

/** Quotes a value in one short line, unless it looks like a password or a key in the wrong variable. */
export function quote(raw: unknown): string {
  if (Array.isArray(raw)) return raw.length === 0 ? "an empty list" : "a list";
  if (typeof raw === "object" && raw !== null) return "an object";
  if (typeof raw !== "string") return String(raw);
  const text = raw.trim();
  const isPlain = text.length <= LONGEST_QUOTE && text.split(/[ ,._]+|(?<=\w)-/).every((word) => PLAIN_WORD.test(word));
  return text === "" || isPlain ? `"${text}"` : "the value";
}

const VARIABLES: ReadonlySet<string> = new Set(SETTING_KEYS.map((key) => SETTINGS[key].variable));

/** Refuses misspelt environment variables: they would be ignored silently. */
export function refuseUnknownVariables(variables: Sources["variables"], mistakes: Mistakes): void {
  const ours = Object.keys(variables).filter((name) => /^FENCEPOST_/i.test(name));
  for (const name of ours.sort()) {
    if (!VARIABLES.has(name)) mistakes.add(name, `is not a setting${didYouMean(name, VARIABLES)}`);
  }
}

/** Refuses unknown keys. `name`: the object's name in messages (the file, or a chain in it). */
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

function didYouMean(name: string, known: Iterable<string>) {
  const near = nearestName(name, known, normalised);
  return near === null ? "" : ` (did you mean ${near}?)`;
}

/**
 * Normalises a name, so that a variable's name can be compared with a key: removes the prefix, the separators and the
 * casing.
 */
function normalised(name: string) {
  return name.replace(/^FENCEPOST_|[_-]/gi, "").toLowerCase();
}
