import type { Static, TSchema } from "typebox";

interface ShapeSchema {
  readonly properties?: Readonly<Record<string, ShapeSchema>>;
  readonly additionalProperties?: unknown;
  readonly items?: ShapeSchema;
}

/**
 * What the contract names of an answer, and nothing else: over HTTP an answer is written by the schema of its route, and members
 * that it does not name stay inside.
 */
export function shaped<T extends TSchema>(schema: T, value: unknown): Static<T> {
  return pick(schema as ShapeSchema, value) as Static<T>;
}

function pick({ properties, additionalProperties, items }: ShapeSchema, value: unknown): unknown {
  if (Array.isArray(value)) return items === undefined ? value : value.map((each) => pick(items, each));
  if (typeof value !== "object" || value === null || properties === undefined) return value;
  if (additionalProperties === true) return value;
  const record = value as Readonly<Record<string, unknown>>;
  const told: Record<string, unknown> = {};
  for (const name of Object.keys(properties)) {
    if (record[name] !== undefined) told[name] = pick(properties[name] as ShapeSchema, record[name]);
  }
  return told;
}
