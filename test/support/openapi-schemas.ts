/** Returns the target of a `$ref` in an OpenAPI document. */
export function resolvePointer(document: unknown, pointer: string): unknown {
  return pointer
    .slice(2)
    .split("/")
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], document);
}

/** The schema with every reference replaced by its target, so that a validator can use it alone. */
export function inlined(document: unknown, schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map((each) => inlined(document, each));
  if (typeof schema !== "object" || schema === null) return schema;
  const { $ref, ...rest } = schema as { $ref?: string };
  if ($ref !== undefined) return inlined(document, resolvePointer(document, $ref));
  return Object.fromEntries(Object.entries(rest).map(([name, member]) => [name, inlined(document, member)]));
}
