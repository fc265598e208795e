import { SETTINGS, type SettingKey } from "./schema.ts";
import type { Setting } from "./setting.ts";

/** `config` shows what is there and demands nothing. */
export type Command = "dev" | "start" | "migrate" | "config";

/** Who said it. Each wins over those before it. */
export type Origin = "default" | "file" | "chain" | "environment" | "flag";

export interface Sources {
  readonly command: Command;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly file: ConfigFile | null;
  readonly flags: Flags;
}

export interface ConfigFile {
  /** As a message calls it. */
  readonly name: string;
  /** Absent: it is no file of its own, as with the library. */
  readonly path?: string;
  readonly content: unknown;
}

export type Flags = Readonly<Partial<Record<SettingKey, unknown>>>;

/** An object of the file, not judged yet. */
export type Entry = Readonly<Record<string, unknown>>;

export interface Given {
  readonly origin: Origin;
  readonly name: string;
  readonly raw: unknown;
}

/** Collects everything that is wrong, so that people repair it in one go. */
export class Mistakes {
  readonly lines: string[] = [];

  add(name: string, phrase: string): void {
    this.lines.push(`${name}: ${phrase}`);
  }

  refuse(key: SettingKey, phrase: string): void {
    this.add(SETTINGS[key].variable, phrase);
  }

  /** The value, or null after adding a line. */
  judge<T>(setting: Pick<Setting<T>, "parse" | "secrets">, given: Pick<Given, "name" | "raw">): { value: T } | null {
    const parsed = setting.parse(given.raw);
    if ("value" in parsed) return { value: parsed.value };
    this.add(given.name, `${setting.secrets !== undefined ? "the value" : quote(given.raw)} ${parsed.mistake}`);
    return null;
  }
}

const LONGEST_QUOTE = 24;
/** A number, one with a unit, or a word: what a slip looks like. */
const PLAIN_WORD = /^(?:[+-]?\d{1,12}[a-z]{0,3}|[a-z]{1,12})$/i;

/** One short line. A value that looks like a password or a key, put into the wrong variable, is not shown. */
export function quote(raw: unknown): string {
  if (Array.isArray(raw)) return raw.length === 0 ? "an empty list" : "a list";
  if (typeof raw === "object" && raw !== null) return "an object";
  if (typeof raw !== "string") return String(raw);
  const said = raw.trim();
  const isPlain = said.length <= LONGEST_QUOTE && said.split(/[ ,._]+|(?<=\w)-/).every((word) => PLAIN_WORD.test(word));
  return said === "" || isPlain ? `"${said}"` : "the value";
}
