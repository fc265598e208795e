/** The parts of a policy document, with their paths for messages, and the values that several kinds of rules have. */
import type { Address, Hex } from "../lane.ts";
import { messageOf } from "../text/thrown.ts";

/** Parsers for addresses and ABIs; both throw with a reason. */
export interface PolicyWords {
  parseAddress(text: string): Address;
  /**
   * Finds the functions that a policy names: the one with this signature, or all functions of the ABI with this name.
   */
  functions(callee: string | { readonly abi: readonly unknown[]; readonly function: string }): readonly Signature[];
}

export interface Signature {
  readonly selector: Hex;
  readonly inputs: readonly { readonly name?: string | undefined; readonly type: string }[];
}

export type Document = Readonly<Record<string, unknown>>;

const WHOLE = /^\d{1,78}$/;
const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DURATION = /^(\d{1,12})(ms|s|m|h)$/;
const A_YEAR_MS = 365 * 24 * 3_600_000;

/**
 * A part of the policy document, with its path for messages. Mistakes are collected and parsing continues, so that all
 * are reported.
 */
export class Place {
  readonly raw: unknown;
  readonly path: string;
  readonly context: { readonly words: PolicyWords; readonly mistakes: string[]; abis: Document };

  constructor(raw: unknown, path: string, context: Place["context"]) {
    this.raw = raw;
    this.path = path;
    this.context = context;
  }

  at(name: string | number, raw: unknown): Place {
    return new Place(raw, this.path === "" ? `${name}` : `${this.path}.${name}`, this.context);
  }

  refuse<T>(why: string, otherwise: T): T {
    this.context.mistakes.push(`${this.path === "" ? "the document" : this.path} ${why}`);
    return otherwise;
  }

  object(known?: readonly string[]): Document {
    const { raw } = this;
    if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return this.refuse("is not an object", {});
    for (const name of Object.keys(raw)) {
      if (known?.includes(name) === false)
        this.at(name, null).refuse(`is not a known field (known: ${known.join(", ")})`, null);
    }
    return raw as Document;
  }

  members(): readonly (readonly [string, Place])[] {
    return Object.entries(this.object()).map(([name, raw]) => [name, this.at(name, raw)] as const);
  }

  /** Reads the fields of this part by name. Fields that are not in `known` are reported as mistakes. */
  fields(known: readonly string[]): (name: string) => Place {
    const said = this.object(known);
    return (name) => this.at(name, said[name]);
  }

  /** Parses an optional part of the policy document; null if it is absent. */
  maybe<T>(read: (place: Place) => T): T | null {
    return this.raw === undefined ? null : read(this);
  }

  list<T>(item: (place: Place) => T): readonly T[] | null {
    if (this.raw === undefined) return null;
    if (!Array.isArray(this.raw)) return this.refuse("is not a list", null);
    return this.raw.map((each, index) => item(this.at(index, each)));
  }

  trying<T>(otherwise: T, work: (words: PolicyWords) => T): T {
    try {
      return work(this.context.words);
    } catch (error) {
      return this.refuse(messageOf(error), otherwise);
    }
  }
}

export function chainId(place: Place): number {
  const { raw } = place;
  if (typeof raw !== "number" || !Number.isSafeInteger(raw) || raw < 1) place.refuse("is not a chain id", null);
  return Number(raw);
}

/** Parses an amount, a whole number as text: JSON numbers beyond 2^53 would be rounded. */
export function amount(place: Place, of = "an amount of wei"): bigint {
  const { raw } = place;
  if (typeof raw === "string" && WHOLE.test(raw)) return BigInt(raw);
  return place.refuse(`is not ${of} (a whole number as text: "1000000000000000000")`, 0n);
}

/** Parses the time that something waits for approval; a day if it is absent. */
export function waitingTime(place: Place): number {
  const [, digits, unit] = DURATION.exec(String(place.raw ?? "24h")) ?? [];
  const ms = Number(digits) * (UNITS_MS[unit ?? ""] ?? Number.NaN);
  if (ms >= 1_000 && ms <= A_YEAR_MS) return ms;
  return place.refuse("is not a duration from a second to a year (45s, 90m, 24h)", A_YEAR_MS);
}

export function setOf<T>(items: readonly T[] | null): ReadonlySet<T> | null {
  return items === null ? null : new Set(items);
}
