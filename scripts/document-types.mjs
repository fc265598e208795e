// Writes the descriptions of the contract's schemas, and the comments of the settings, into the emitted declarations as
// JSDoc. tsc infers these types and drops every comment on the way; editors show the declaration's JSDoc on hover.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Documents dist/contract and the settings in dist/main/config. */
export async function documentTypes(root) {
  const folders = ["schemas", "calls"].map((folder) => join(root, "dist/contract", folder));
  const files = folders.flatMap((folder) => readdirSync(folder).map((file) => join(folder, file)));
  const modules = await Promise.all(
    files.filter((file) => file.endsWith(".js")).map((file) => import(pathToFileURL(file).href)),
  );
  const schemas = schemasByName(modules);
  for (const file of files.filter((each) => each.endsWith(".d.ts"))) {
    rewrite(file, (name) => schemas.get(name) ?? null);
  }
  const settings = settingsIn(readFileSync(join(root, "src/main/config/schema.ts"), "utf8"));
  rewrite(join(root, "dist/main/config/schema.d.ts"), (name) => (/^[A-Z_]*SETTINGS$/.test(name) ? settings : null));
}

/** Schemas by the names of their constants: exported ones, and others by their title, which is the same. */
function schemasByName(modules) {
  const found = new Map();
  const visit = (schema) => {
    if (typeof schema !== "object" || schema === null) return;
    if (typeof schema.title === "string" && !found.has(schema.title)) found.set(schema.title, schema);
    for (const part of partsOf(schema)) visit(part);
    for (const member of Object.values(schema.properties ?? {})) visit(member);
  };
  for (const [name, value] of modules.flatMap((module) => Object.entries(module))) {
    if (typeof value !== "object" || value === null) continue;
    if (partsOf(value).length > 0 || "properties" in value) found.set(name, value);
    visit(value);
  }
  return found;
}

const partsOf = ({ items, anyOf = [] }) => [...(items === undefined ? [] : [items]), ...anyOf];

/** The object schemas that a value of this schema may have: itself, the items of a list, the members of a union. */
const objectsOf = (schema) => [schema, ...partsOf(schema).flatMap(objectsOf)].filter(({ properties }) => properties);

/** Comments of the settings in the source, in the form of a schema. */
function settingsIn(source) {
  const commented = [...source.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s+(\w+): /g)];
  const properties = commented.map(([, text, name]) => [
    name,
    { description: text.replaceAll(/\s+\*?\s*/g, " ").trim() },
  ]);
  return { properties: Object.fromEntries(properties) };
}

/** Inserts a comment above each member of a constant's type that its schema describes. Members are found by indentation. */
function rewrite(file, schemaOf) {
  let open = [];
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, constant] = /^(?:export )?declare const (\w+): /.exec(line) ?? [];
      if (constant !== undefined) open = [{ indent: 0, schemas: objectsOf(schemaOf(constant) ?? {}) }];
      const [, spaces, name] = /^( +)(?:readonly )?"?(\w+)"?\??: /.exec(line) ?? [];
      if (name === undefined) return [line];
      while ((open.at(-1)?.indent ?? -1) >= spaces.length) open.pop();
      const members = (open.at(-1)?.schemas ?? []).flatMap(({ properties }) => properties[name] ?? []);
      open.push({ indent: spaces.length, schemas: members.flatMap(objectsOf) });
      const { description } = members.find((each) => each.description) ?? {};
      return description === undefined ? [line] : [`${spaces}/** ${description.replaceAll("*/", "*\\/")} */`, line];
    });
  writeFileSync(file, lines.join("\n"));
}
