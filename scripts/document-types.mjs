// Writes the descriptions of the contract's schemas, and the comments of the settings, into the emitted declarations as
// JSDoc. tsc infers these types and drops every comment on the way; editors show the declaration's JSDoc on hover.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Documents dist/contract and the settings in dist/main/config. */
export async function documentTypes(root) {
  const schemas = await contractSchemas(root);
  for (const file of contractFiles(root).filter((each) => each.endsWith(".d.ts"))) {
    rewrite(file, (name) => schemas.get(name) ?? null);
  }
  const settings = settingsIn(readFileSync(join(root, "src/main/config/schema.ts"), "utf8"));
  rewrite(join(root, "dist/main/config/schema.d.ts"), (name) => (/^[A-Z_]*SETTINGS$/.test(name) ? settings : null));
}

function contractFiles(root) {
  const folders = ["schemas", "calls"].map((folder) => join(root, "dist/contract", folder));
  return folders.flatMap((folder) => readdirSync(folder).map((file) => join(folder, file)));
}

/** Schemas of the compiled contract, by name. */
export async function contractSchemas(root) {
  const files = contractFiles(root).filter((file) => file.endsWith(".js"));
  return schemasByName(await Promise.all(files.map((file) => import(pathToFileURL(file).href))));
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

function rewrite(file, schemaOf) {
  writeFileSync(file, documented(readFileSync(file, "utf8"), schemaOf));
}

/**
 * Inserts a comment above each member that the schema of the constant or of the type describes. Members are found by
 * indentation.
 */
export function documented(text, schemaOf) {
  let open = [];
  return text
    .split("\n")
    .flatMap((line) => {
      const [, declaredName] = /^(?:export )?(?:declare )?(?:const|type) (\w+)\b/.exec(line) ?? [];
      if (declaredName !== undefined) open = [{ indent: 0, schemas: objectsOf(schemaOf(declaredName) ?? {}) }];
      else if (/^(?:export|declare|interface|class|function)\b/.test(line)) open = [];
      const [, spaces, name] = /^( +)(?:readonly )?"?(\w+)"?\??: /.exec(line) ?? [];
      if (name === undefined) return [line];
      while ((open.at(-1)?.indent ?? -1) >= spaces.length) open.pop();
      const members = (open.at(-1)?.schemas ?? []).flatMap(({ properties }) => properties[name] ?? []);
      open.push({ indent: spaces.length, schemas: members.flatMap(objectsOf) });
      const { description } = members.find((each) => each.description) ?? {};
      return description === undefined ? [line] : [`${spaces}/** ${description.replaceAll("*/", "*\\/")} */`, line];
    })
    .join("\n");
}
