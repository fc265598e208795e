import { type Static, type TOptional, type TProperties, type TSchema, Type } from "typebox";

/** An object that the reference shows under a name of its own. */
export function named<T extends TProperties>(title: string, members: T, options: object = {}) {
  return Type.Object(members, { title, ...options });
}

/** The same, without room for members that are not named. */
export function closed<T extends TProperties>(title: string, members: T, options: object = {}) {
  return named(title, members, { additionalProperties: false, ...options });
}

/** Each of these members may be left out. */
export function optional<T extends TProperties>(members: T) {
  const each = Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)]);
  return Object.fromEntries(each) as { [K in keyof T]: TOptional<T[K]> };
}

/** The parameters of a query string: any may be left out, and no other is taken. */
export function query<T extends TProperties>(members: T) {
  return Type.Object(optional(members), { additionalProperties: false });
}

/** `type: [..., "null"]`, which serialisers and readers of OpenAPI 3.1 both take better than an anyOf. */
export function nullable<T extends TSchema>(schema: T) {
  const { type, enum: words, ...rest } = schema as { type?: string; enum?: readonly string[] };
  const nullableWords = words === undefined ? {} : { enum: [...words, null] };
  return Type.Unsafe<Static<T> | null>({ ...rest, type: [type, "null"], ...nullableWords });
}

/** A closed list of words. */
export function oneOf<const T extends readonly string[]>(words: T, options: object = {}) {
  return Type.Unsafe<T[number]>({ type: "string", enum: [...words], ...options });
}

/** A query parameter that is read as true or false. */
export function flag<const T extends readonly ("true" | "false")[]>(words: T, options: object = {}) {
  return Type.Unsafe<boolean>({ type: "string", enum: [...words], ...options });
}
