/** Parses a policy document. Reports every mistake with its path. */

import { hash } from "node:crypto";
import type { Address, Hex } from "../lane.ts";
import { messageOf } from "../text/thrown.ts";
import type { ArgumentBound, ArgumentBounds } from "./arguments.ts";
import { ANY, type ApprovalBound, DEPLOY, type Limit, PLAIN, type Policies, type Policy } from "./policy.ts";

/** Parsers of addresses and ABIs; both throw with a reason. */
export interface PolicyWords {
  parseAddress(text: string): Address;
  /** Matching functions: one for a signature, those of that name for an ABI. */
  functions(callee: string | { readonly abi: readonly unknown[]; readonly function: string }): readonly Signature[];
}

interface Signature {
  readonly selector: Hex;
  readonly inputs: readonly { readonly name?: string | undefined; readonly type: string }[];
}

export type ParsedPolicies = { readonly policies: Policies } | { readonly mistakes: readonly string[] };

type Document = Readonly<Record<string, unknown>>;

export function parsePolicies(document: unknown, words: PolicyWords): ParsedPolicies {
  const reader = new Reader(words);
  const all = reader.object(document, "", ["signers", "keys", "abis"]);
  const { abis = {}, signers: ofSigners = {}, keys: ofKeys = {} } = all;
  reader.abis = reader.object(abis, "abis");
  const signers = reader.policies(ofSigners, "signers", (name) => reader.address(name, `signers.${name}`));
  const keys = reader.policies(ofKeys, "keys", (name) => name);
  if (!isStorable(all)) reader.refuse("", "has characters that no database keeps (NUL, or half of a surrogate pair)");
  if (reader.mistakes.length > 0) return { mistakes: reader.mistakes };
  const asksApproval = [...signers.values(), ...keys.values()].some((policy) => policy.requireApproval !== null);
  return { policies: { signers, keys, asksApproval, unreadable: [], hash: hashOf(all), document: all } };
}

/** PostgreSQL's `jsonb` refuses both characters, in names and texts. */
function isStorable(each: unknown) {
  if (typeof each === "string") return !/[\p{Cs}\0]/u.test(each);
  return typeof each !== "object" || each === null || Object.entries(each).flat().every(isStorable);
}

/** The document has mistakes, or rules that this version does not know. */
export function unreadablePolicies(document: Document, mistakes: readonly string[]): Policies {
  const none = { signers: new Map(), keys: new Map(), asksApproval: false };
  return { ...none, unreadable: mistakes, hash: hashOf(document), document };
}

/** Members sorted by name: `jsonb` does not keep their order, and it has no meaning. */
function hashOf(document: Document): Hex {
  const sorted = (_: string, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each;
  return `0x${hash("sha256", JSON.stringify(document, sorted), "hex")}`;
}

/** Replaces a part that cannot be read. */
const NO_ADDRESS = "0x";
const FIELDS = ["chains", "to", "selectors", "calls", "hours", "maxValue", "maxCost", "requireApproval"];
const WINDOWS = ["perTransaction", "perHour", "perDay"];
const HOURS = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/;
const SELECTOR = /^0x[0-9a-fA-F]{8}$/;
const WEI = /^\d{1,78}$/;
/** Number types of one word, with their bits. */
const NUMBERS = /^(?:uint(\d*)|address|bool)$/;

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DURATION = /^(\d{1,12})(ms|s|m|h)$/;
const A_YEAR_MS = 365 * 24 * 3_600_000;

class Reader {
  readonly mistakes: string[] = [];
  abis: Document = {};
  private readonly words: PolicyWords;

  constructor(words: PolicyWords) {
    this.words = words;
  }

  object(raw: unknown, path: string, known?: readonly string[]): Document {
    if (typeof raw !== "object" || raw === null || Array.isArray(raw)) {
      this.refuse(path, "is not an object");
      return {};
    }
    for (const name of Object.keys(raw)) {
      if (known !== undefined && !known.includes(name)) {
        this.refuse(path === "" ? name : `${path}.${name}`, `is not known here (${known.join(", ")})`);
      }
    }
    return raw as Document;
  }

  policies(raw: unknown, path: string, nameOf: (name: string) => string): ReadonlyMap<string, Policy> {
    const policies = new Map<string, Policy>();
    for (const [name, each] of Object.entries(this.object(raw, path))) {
      const owner = name === ANY ? ANY : nameOf(name);
      // The same address in two spellings: the later policy would replace the limits of the earlier one.
      if (policies.has(owner) && owner !== NO_ADDRESS)
        this.refuse(`${path}.${name}`, "has a policy in another spelling");
      policies.set(owner, this.policy(each, `${path}.${name}`));
    }
    return policies;
  }

  address(raw: unknown, path: string): string {
    return this.trying(path, NO_ADDRESS, () => this.words.parseAddress(String(raw)));
  }

  private policy(raw: unknown, path: string): Policy {
    const said = this.object(raw, path, FIELDS);
    const calls = this.list(said.calls, `${path}.calls`, (call, at) => this.call(call, at));
    const selectors = this.list(said.selectors, `${path}.selectors`, (each, at) => this.selectors(each, at));
    return {
      chains: setOf(this.list(said.chains, `${path}.chains`, (each, at) => this.chainId(each, at))),
      to: setOf(this.list(said.to, `${path}.to`, (each, at) => (each === DEPLOY ? DEPLOY : this.address(each, at)))),
      selectors: setOf(selectors?.flat() ?? null),
      hours: said.hours === undefined ? null : this.hours(said.hours, `${path}.hours`),
      maxValue: this.limit(said.maxValue, `${path}.maxValue`),
      maxCost: this.limit(said.maxCost, `${path}.maxCost`),
      arguments: new Map(calls?.flat() ?? []),
      requireApproval: this.approval(said.requireApproval, `${path}.requireApproval`),
    };
  }

  private list<T>(raw: unknown, path: string, item: (raw: unknown, path: string) => T): readonly T[] | null {
    if (raw === undefined) return null;
    if (Array.isArray(raw)) return raw.map((each, index) => item(each, `${path}.${index}`));
    this.refuse(path, "is not a list");
    return null;
  }

  private chainId(raw: unknown, path: string) {
    if (typeof raw !== "number" || !Number.isSafeInteger(raw) || raw < 1) this.refuse(path, "is not a chain id");
    return Number(raw);
  }

  private limit(raw: unknown, path: string): Limit {
    const said = raw === undefined ? {} : this.object(raw, path, WINDOWS);
    const amount = (name: string) => (said[name] === undefined ? null : this.wei(said[name], `${path}.${name}`));
    return { perTransaction: amount("perTransaction"), perHour: amount("perHour"), perDay: amount("perDay") };
  }

  private approval(raw: unknown, path: string): ApprovalBound | null {
    if (raw === undefined) return null;
    const { expiresAfter, ...said } = this.object(raw, path, ["aboveValue", "aboveCost", "expiresAfter"]);
    const amount = (name: string) => (said[name] === undefined ? null : this.wei(said[name], `${path}.${name}`));
    const bounds = { aboveValue: amount("aboveValue"), aboveCost: amount("aboveCost") };
    if (bounds.aboveValue === null && bounds.aboveCost === null)
      this.refuse(path, "has neither aboveValue nor aboveCost");
    const [, digits, unit] = DURATION.exec(String(expiresAfter ?? "24h")) ?? [];
    const expiresAfterMs = Number(digits) * (UNITS_MS[unit ?? ""] ?? Number.NaN);
    if (expiresAfterMs >= 1_000 && expiresAfterMs <= A_YEAR_MS) return { ...bounds, expiresAfterMs };
    this.refuse(`${path}.expiresAfter`, "is not a duration from a second to a year (45s, 90m, 24h)");
    return null;
  }

  /** A whole number as text: JSON numbers beyond 2^53 would be rounded. */
  private wei(raw: unknown, path: string) {
    if (typeof raw === "string" && WEI.test(raw)) return BigInt(raw);
    this.refuse(path, 'is not an amount of wei (a whole number as text: "1000000000000000000")');
    return 0n;
  }

  private hours(raw: unknown, path: string): Policy["hours"] {
    const [, fromHour, fromMinute, toHour, toMinute] = HOURS.exec(String(raw)) ?? [];
    const from = Number(fromHour) * 60 + Number(fromMinute);
    const to = Number(toHour) * 60 + Number(toMinute);
    if (Number.isInteger(from + to) && from !== to) return { from, to };
    this.refuse(path, "is not a time of the day in UTC (08:00-18:00)");
    return null;
  }

  private selectors(raw: unknown, path: string): readonly string[] {
    const text = String(raw);
    if (text === DEPLOY || text === PLAIN) return [text];
    if (SELECTOR.test(text)) return [text.toLowerCase()];
    return this.trying(path, [], () => this.words.functions(text).map(({ selector }) => selector.toLowerCase()));
  }

  private call(raw: unknown, path: string): readonly (readonly [string, ArgumentBounds])[] {
    const said = this.object(raw, path, ["abi", "function", "arguments"]);
    const abi = said.abi === undefined ? null : this.abis[String(said.abi)];
    if (abi !== null && !Array.isArray(abi)) {
      this.refuse(`${path}.abi`, "is not the name of a list in abis");
      return [];
    }
    const name = String(said.function);
    const found = this.trying(`${path}.function`, [], () =>
      this.words.functions(abi === null ? name : { abi, function: name }),
    );
    const bounds = Object.entries(this.object(said.arguments, `${path}.arguments`));
    return found.map((signature) => {
      const own = bounds.map(([argument, bound]) =>
        this.bound(signature, [argument, bound], `${path}.arguments.${argument}`),
      );
      return [signature.selector.toLowerCase(), own.filter((each) => each !== null)] as const;
    });
  }

  private bound({ inputs }: Signature, [name, raw]: readonly [string, unknown], path: string): ArgumentBound | null {
    const said = this.object(raw, path, ["in", "min", "max"]);
    const at = inputs.findIndex((input, index) => input.name === name || String(index) === name);
    const bits = at < 0 ? null : bitsOf(inputs[at]?.type ?? "");
    const word = wordOf(inputs, at);
    if (bits === null || word === null) {
      this.refuse(
        path,
        at < 0
          ? "is not an argument of that function"
          : "cannot be bounded (uint, address or bool can, behind no array or tuple)",
      );
      return null;
    }
    const number = (each: unknown, place: string) => this.number(each, place);
    const allowed = this.list(said.in, `${path}.in`, number);
    return {
      ...{ name, word, bits, in: allowed === null ? null : new Set(allowed) },
      min: said.min === undefined ? null : number(said.min, `${path}.min`),
      max: said.max === undefined ? null : number(said.max, `${path}.max`),
    };
  }

  /** Decimal, or hex for addresses. */
  private number(raw: unknown, path: string) {
    if (typeof raw === "string" && (WEI.test(raw) || /^0x[0-9a-fA-F]{1,64}$/.test(raw))) return BigInt(raw);
    if (typeof raw === "boolean") return raw ? 1n : 0n;
    this.refuse(path, "is neither a whole number as text nor an address");
    return 0n;
  }

  private trying<T>(path: string, otherwise: T, work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.refuse(path, messageOf(error));
      return otherwise;
    }
  }

  refuse(path: string, why: string): void {
    this.mistakes.push(`${path === "" ? "the document" : path} ${why}`);
  }
}

function setOf<T>(items: readonly T[] | null): ReadonlySet<T> | null {
  return items === null ? null : new Set(items);
}

function bitsOf(type: string): number | null {
  const match = NUMBERS.exec(type);
  if (match === null) return null;
  if (type === "address") return 160;
  return type === "bool" ? 1 : Number(match[1] || 256);
}

/** Only if each argument before it takes one word; fixed arrays and tuples may take more. */
function wordOf(inputs: Signature["inputs"], at: number): number | null {
  const isPlain = ({ type }: Signature["inputs"][number]) => !/^tuple|\[\d+\]/.test(type);
  return at >= 0 && inputs.slice(0, at).every(isPlain) ? at : null;
}
