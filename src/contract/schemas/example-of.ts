import type { TSchema } from "typebox";

/** The JSON Schema keywords from which an example is built. */
interface Keywords {
  readonly examples?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
  readonly items?: Keywords;
  readonly anyOf?: readonly TSchema[];
  readonly type?: string | readonly string[];
  readonly minimum?: number;
}

/**
 * An example value for a schema: the schema's own example, or one combined from the examples of its parts. Optional
 * members are left out, and a list whose items may be of several kinds has one of each. `members` replace those of an
 * object.
 */
export function exampleOf(schema: TSchema, members: object = {}): unknown {
  const { examples, enum: words, properties, required = [], items, anyOf, type, minimum = 0 } = schema as Keywords;
  if (examples !== undefined) return examples[0];
  if (properties !== undefined) {
    const own = required.map((name) => [name, exampleOf(properties[name] ?? {})]);
    return { ...Object.fromEntries(own), ...members };
  }
  if (items !== undefined) return (items.anyOf ?? [items]).map((each) => exampleOf(each as TSchema));
  if (anyOf?.[0] !== undefined) return exampleOf(anyOf[0]);
  if (Array.isArray(type)) return null;
  return words?.[0] ?? { integer: minimum, number: minimum, boolean: false, object: {} }[type as string] ?? "";
}
