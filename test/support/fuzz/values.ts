/** Generates values for a JSON schema: valid ones and almost valid ones. */
import fc, { type Arbitrary } from "fast-check";

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Schema;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly examples?: readonly unknown[];
}

/** Maximum length of generated values, so that a run does not spend its time on long ones. */
const LONGEST = 40;

/**
 * A value that fits the schema. If the schema has examples, half of the values are examples, because these pass more
 * checks.
 */
export function fitting(schema: Schema): Arbitrary<unknown> {
  const own = fittingAny(schema);
  return schema.examples === undefined ? own : fc.oneof(fc.constantFrom(...schema.examples), own);
}

function fittingAny(schema: Schema): Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(fitting));
  const types = [schema.type ?? "any"].flat() as readonly string[];
  return fc.oneof(...types.map((type) => (BY_TYPE[type] ?? (() => fc.jsonValue({ maxDepth: 2 })))(schema)));
}

const BY_TYPE: Readonly<Record<string, (schema: Schema) => Arbitrary<unknown>>> = {
  null: () => fc.constant(null),
  boolean: () => fc.boolean(),
  integer: ({ minimum, maximum }) =>
    fc.oneof(fc.constant(minimum ?? 0), integers(minimum, 100), integers(minimum, maximum)),
  number: () => fc.double({ noNaN: true }),
  string: texts,
  array: ({ items = {}, maxItems = LONGEST }) => fc.array(fitting(items), { maxLength: Math.min(maxItems, 3) }),
  object: ({ properties, required = [] }) => {
    if (properties === undefined) return fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 });
    const members = Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, fitting(each)]));
    return fc.record(members, { requiredKeys: required.filter((name) => name in members) });
  },
};

function integers(min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER): Arbitrary<number> {
  return fc.maxSafeInteger().map((value) => min + (Math.abs(value) % (Math.max(max, min) - min + 1)));
}

function texts({ pattern, format, minLength = 0, maxLength = LONGEST }: Schema): Arbitrary<unknown> {
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern), { size: "small" });
  if (format === "uuid") return fc.uuid();
  if (format === "date-time") return fc.date({ noInvalidDate: true }).map((date) => date.toISOString());
  return fc.string({ minLength, maxLength: Math.min(maxLength, LONGEST), unit: "grapheme" });
}

/** Values that programs often handle wrongly. */
const STUMBLING = fc.constantFrom<unknown>(
  ...[null, true, 0, -1, 1.5, 2 ** 53, -(2 ** 63), 1e308, [], {}, [[]], { toString: 1 }, [null], { length: -1 }],
  ...["", " ", "0", "-1", "1e3", "1.5", "0x", "0x0", "0xg", "null", "NaN", "Infinity", "undefined", "__proto__"],
  ...["\u0000", "a\u0000b", "\ud800", "\u202e", "💥", "\n", "ﬀ", "İ", "'; DROP TABLE x", "%s%n", "../.."],
  ...["9".repeat(80), `0x${"f".repeat(64)}`, `0x${"f".repeat(65)}`, "x".repeat(256), "x".repeat(9_000)],
  ...[
    "0x0000000000000000000000000000000000000000",
    "1970-01-01T00:00:00Z",
    "+010000-01-01T00:00:00Z",
    "1s",
    "10m",
    "0s",
  ],
);

export const stumbling: Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: STUMBLING },
  fc.jsonValue({ maxDepth: 3 }),
);

/** A value that fits the schema except in one place: another value, a missing one, an extra one, or a special name. */
export function almost(schema: Schema): Arbitrary<unknown> {
  const slip = fc.constantFrom("replace", "drop", "add", "special" as const);
  return fc.tuple(fitting(schema), fc.nat(), stumbling, slip).map(([value, at, other, how]) => {
    const copy = structuredClone(value);
    const places = placesIn(copy);
    const place = places[at % Math.max(places.length, 1)];
    if (place === undefined) return other;
    if (how === "replace") place.holder[place.name] = other;
    else if (how === "drop") delete place.holder[place.name];
    else if (how === "add") place.holder[`x${at % 7}`] = other;
    else Object.defineProperty(place.holder, "__proto__", { value: other, enumerable: true, configurable: true });
    return copy;
  });
}

interface Place {
  readonly holder: Record<string, unknown>;
  readonly name: string;
}

function placesIn(value: unknown): readonly Place[] {
  if (typeof value !== "object" || value === null) return [];
  const holder = value as Record<string, unknown>;
  return Object.keys(holder).flatMap((name) => [{ holder, name }, ...placesIn(holder[name])]);
}
