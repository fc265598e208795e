import { type Static, type TOptional, type TProperties, type TSchema, type TSchemaOptions, Type } from "typebox";

/** The description of a value, or several JSON Schema keywords for it. */
type About = string | TSchemaOptions;

function keywords(about: About, example?: unknown): TSchemaOptions {
  const described = typeof about === "string" ? { ...(about !== "" && { description: about }) } : about;
  return example === undefined ? described : { ...described, examples: [example] };
}

export const text = (about: About = "", example?: string) => Type.String(keywords(about, example));
export const truth = (about: About = "", example?: boolean) => Type.Boolean(keywords(about, example));
export const amount = (about: About = "", example?: number) => Type.Number({ minimum: 0, ...keywords(about, example) });
export const count = (about: About = "", example?: number) => Type.Integer({ minimum: 0, ...keywords(about, example) });
/** Schema of a number that counts from one. */
export const ordinal = (about: About = "", example?: number) =>
  Type.Integer({ minimum: 1, ...keywords(about, example) });
/** Schema of the maximum number of items on a page. */
export const limit = (maximum: number, usual = 100) =>
  Type.Integer({ minimum: 1, maximum, default: usual, description: "The most items of one answer." });

export function list<T extends TSchema>(items: T, about: About = "", example?: readonly unknown[]) {
  return Type.Array(items, keywords(about, example));
}

export function object<T extends TProperties>(members: T, about: About = "") {
  return Type.Object(members, keywords(about));
}

/** Schema of an object with any member names and values of one kind. */
export function record<T extends TSchema>(values: T, about: About, example?: object) {
  return Type.Record(Type.String(), values, keywords(about, example));
}

/** Arguments of an object's schema: its members, optionally preceded by its description. */
type Members<T> = readonly [members: T] | readonly [about: About, members: T];

/** Schema of an object that the reference documentation shows under its own name. */
export function named<T extends TProperties>(title: string, ...given: Members<T>) {
  const [about, members] = given.length === 1 ? ["", given[0]] : given;
  return object(members, { title, ...keywords(about) });
}

/** Like `named`, but members that are not declared are not allowed. */
export function closed<T extends TProperties>(title: string, ...given: Members<T>) {
  const [about, members] = given.length === 1 ? ["", given[0]] : given;
  return named(title, { additionalProperties: false, ...keywords(about) }, members);
}

/** A copy of the schema with its own description. */
export function described<T extends TSchema>(schema: T, description: string) {
  return Type.Unsafe<Static<T>>({ ...schema, description });
}

/** Makes all of these members optional. */
export function optional<T extends TProperties>(members: T) {
  const each = Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)]);
  return Object.fromEntries(each) as { [K in keyof T]: TOptional<T[K]> };
}

/** Schema of query parameters: all are optional, and others are not allowed. */
export function query<T extends TProperties>(members: T) {
  return object(optional(members), { additionalProperties: false });
}

/** A nullable schema as `type: [..., "null"]`, which serialisers and OpenAPI 3.1 tools handle better than an anyOf. */
export function nullable<T extends TSchema>(schema: T, options: object = {}) {
  const { type, enum: words, ...rest } = schema as { type?: string; enum?: readonly string[] };
  const nullableWords = words === undefined ? {} : { enum: [...words, null] };
  return Type.Unsafe<Static<T> | null>({ ...rest, type: [type, "null"], ...nullableWords, ...options });
}

/** Option of a nullable schema whose example value is null. */
export const MOSTLY_NULL = { examples: [null] };

/** Schema of a string from a closed list. */
export function oneOf<const T extends readonly string[]>(words: T, about: About = "", example?: T[number]) {
  return Type.Unsafe<T[number]>({ type: "string", enum: [...words], ...keywords(about, example) });
}

/** Schema of a query parameter that is read as true or false. */
export function flag<const T extends readonly ("true" | "false")[]>(words: T, about: About = "") {
  return Type.Unsafe<boolean>({ type: "string", enum: [...words], ...keywords(about) });
}
