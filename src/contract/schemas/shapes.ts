import { type Static, type TOptional, type TProperties, type TSchema, type TSchemaOptions, Type } from "typebox";

/** The description of a value, or several keywords of its schema. */
type About = string | TSchemaOptions;

function keywords(about: About, example?: unknown): TSchemaOptions {
  const described = typeof about === "string" ? { ...(about !== "" && { description: about }) } : about;
  return example === undefined ? described : { ...described, examples: [example] };
}

export const text = (about: About = "", example?: string) => Type.String(keywords(about, example));
export const truth = (about: About = "", example?: boolean) => Type.Boolean(keywords(about, example));
export const amount = (about: About = "", example?: number) => Type.Number({ minimum: 0, ...keywords(about, example) });
export const count = (about: About = "", example?: number) => Type.Integer({ minimum: 0, ...keywords(about, example) });
/** Counts from one. */
export const ordinal = (about: About = "", example?: number) =>
  Type.Integer({ minimum: 1, ...keywords(about, example) });
/** The most items of a page. */
export const limit = (maximum: number, usual = 100) => Type.Integer({ minimum: 1, maximum, default: usual });

export function list<T extends TSchema>(items: T, about: About = "", example?: readonly unknown[]) {
  return Type.Array(items, keywords(about, example));
}

export function object<T extends TProperties>(members: T, about: About = "") {
  return Type.Object(members, keywords(about));
}

/** An object with any members of one kind. */
export function record<T extends TSchema>(values: T, about: About, example?: object) {
  return Type.Record(Type.String(), values, keywords(about, example));
}

/** Members of an object, after what is said of it, if anything is. */
type Members<T> = readonly [members: T] | readonly [about: About, members: T];

/** An object that the reference shows under a name of its own. */
export function named<T extends TProperties>(title: string, ...given: Members<T>) {
  const [about, members] = given.length === 1 ? ["", given[0]] : given;
  return object(members, { title, ...keywords(about) });
}

/** The same, without room for members that are not named. */
export function closed<T extends TProperties>(title: string, ...given: Members<T>) {
  const [about, members] = given.length === 1 ? ["", given[0]] : given;
  return named(title, { additionalProperties: false, ...keywords(about) }, members);
}

/** The same schema with a description of its own. */
export function described<T extends TSchema>(schema: T, description: string) {
  return Type.Unsafe<Static<T>>({ ...schema, description });
}

/** Each of these members may be left out. */
export function optional<T extends TProperties>(members: T) {
  const each = Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)]);
  return Object.fromEntries(each) as { [K in keyof T]: TOptional<T[K]> };
}

/** The parameters of a query string: any may be left out, and no other is taken. */
export function query<T extends TProperties>(members: T) {
  return object(optional(members), { additionalProperties: false });
}

/** `type: [..., "null"]`, which serialisers and readers of OpenAPI 3.1 both take better than an anyOf. */
export function nullable<T extends TSchema>(schema: T, options: object = {}) {
  const { type, enum: words, ...rest } = schema as { type?: string; enum?: readonly string[] };
  const nullableWords = words === undefined ? {} : { enum: [...words, null] };
  return Type.Unsafe<Static<T> | null>({ ...rest, type: [type, "null"], ...nullableWords, ...options });
}

/** A nullable value is null in examples. */
export const MOSTLY_NULL = { examples: [null] };

/** A closed list of words. */
export function oneOf<const T extends readonly string[]>(words: T, about: About = "", example?: T[number]) {
  return Type.Unsafe<T[number]>({ type: "string", enum: [...words], ...keywords(about, example) });
}

/** A query parameter that is read as true or false. */
export function flag<const T extends readonly ("true" | "false")[]>(words: T, about: About = "") {
  return Type.Unsafe<boolean>({ type: "string", enum: [...words], ...keywords(about) });
}
