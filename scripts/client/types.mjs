// The types of `fencepost-client`: the declarations that src/client/index.ts exports, and those that they use, taken from the
// declaration files of the build. A type that TypeBox computes from a schema is written out, and the few types of abitype are
// copied, so that the package depends on neither. The compiler's API is "unstable": its version is exact in package.json.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { SyntaxKind } from "typescript/unstable/ast";
import { API, NodeBuilderFlags } from "typescript/unstable/sync";

const OPTIONS = { target: "es2022", lib: ["es2022", "dom"], module: "nodenext", strict: true, types: [], noEmit: true };
const WRITTEN_OUT =
  NodeBuilderFlags.NoTruncation | NodeBuilderFlags.InTypeAlias | NodeBuilderFlags.MultilineObjectLiterals;
const WORD = /[A-Za-z_$][\w$]*/g;
const INSIDE = /\bimport\("([^"]+)"\)\.(\w+)/g;
const COMMENT = /\/\*[\s\S]*?\*\/|\/\/.*/g;

const abitype = dirname(createRequire(import.meta.url).resolve("abitype/package.json"));
const abitypeEntry = join(abitype, JSON.parse(readFileSync(join(abitype, "package.json"), "utf8")).types);

/** The folder of the package whose declarations are copied. */
export const copiedPackage = abitype;

/** Text of each declaration file, by its path in the package. `dist` is the folder of the compiled source. */
export function clientTypes(dist) {
  const entry = join(dist, "client/index.d.ts");
  const config = join(dist, "tsconfig.client-types.json");
  writeFileSync(
    config,
    JSON.stringify({
      compilerOptions: { ...OPTIONS, exactOptionalPropertyTypes: true, skipLibCheck: true },
      files: [entry],
    }),
  );
  const api = new API({ cwd: dist });
  try {
    const [project] = api.updateSnapshot({ openProjects: [config] }).getProjects();
    const files = new Map();
    const fileAt = (path) => {
      if (!files.has(path)) files.set(path, readFile(project, path));
      return files.get(path);
    };
    needAll(fileAt, entry);
    return new Map([...files].map(([path, file]) => [placeOf(path, dist), print(file, path, dist)]));
  } finally {
    api.close();
    rmSync(config);
  }
}

/** The statements of a file. `needed` collects those to keep, and names of the imports and exports to keep. */
function readFile({ program, checker }, path) {
  const file = program.getSourceFile(path);
  if (file === undefined) throw new Error(`${path} has no declarations`);
  const statements = [...file.statements].flatMap((node) => importedInside(statementOf(node, file.text, checker)));
  const declared = new Map();
  for (const statement of statements) {
    for (const name of statement.declares) declared.set(name, [...(declared.get(name) ?? []), statement]);
  }
  return { statements, declared, needed: new Set() };
}

function statementOf(node, source, checker) {
  const text = source.slice(node.pos, node.end).trim();
  const from = node.moduleSpecifier?.text;
  if (node.kind === SyntaxKind.ImportDeclaration) {
    return { kind: "import", from, names: namesIn(node.importClause?.namedBindings, text), declares: [], text };
  }
  if (node.kind === SyntaxKind.ExportDeclaration) {
    const star = node.exportClause === undefined;
    return {
      kind: star ? "star" : "export",
      from,
      names: star ? [] : namesIn(node.exportClause, text),
      declares: [],
      text,
    };
  }
  const declares = node.declarationList?.declarations.map(({ name }) => name.text) ?? [node.name.text];
  const isSchema = node.kind === SyntaxKind.VariableStatement && /\bType\.T[A-Z]|import\("typebox"\)/.test(text);
  const isComputed = node.kind === SyntaxKind.TypeAliasDeclaration && /\bStatic</.test(text);
  return {
    ...{ kind: isSchema ? "schema" : "declaration", names: [], declares },
    text: isComputed ? writtenOut(checker, node, text) : text,
  };
}

/** Makes imports inside a type, as `import("./lane.ts").Hex`, imports of the module. */
function importedInside(statement) {
  if (statement.kind !== "declaration") return [statement];
  const inside = [...statement.text.matchAll(INSIDE)].map(([, from, name]) => {
    return { kind: "import", from, names: [{ there: name, here: name }], declares: [], text: "" };
  });
  return [...inside, { ...statement, text: statement.text.replaceAll(INSIDE, "$2") }];
}

/** Names of an import or export: `there` in the other module, `here` in this one. `*` is the whole module. */
function namesIn(clause, text) {
  if (clause === undefined) throw new Error(`neither names nor a namespace: ${text}`);
  if (clause.elements === undefined) return [{ there: "*", here: clause.name.text }];
  return clause.elements.map(({ name, propertyName }) => ({ there: propertyName?.text ?? name.text, here: name.text }));
}

function writtenOut(checker, node, text) {
  const type = checker.typeToString(checker.getTypeFromTypeNode(node.type), node, WRITTEN_OUT);
  return `${text.slice(0, text.indexOf("=") + 1)} ${type};`;
}

/** Keeps everything that a module exports. */
function needAll(fileAt, path) {
  for (const { kind, from, names, declares, text } of fileAt(path).statements) {
    if (kind === "star") needAll(fileAt, resolve(path, from));
    else if (kind === "export") for (const { here } of names) need(fileAt, path, here);
    else if (/^\s*export\b/.test(text.replace(COMMENT, ""))) for (const name of declares) needHere(fileAt, path, name);
  }
}

/** Keeps one export of a module. Returns false if the module has no such export. */
function need(fileAt, path, name) {
  const { statements, declared, needed } = fileAt(path);
  for (const { kind, from, names } of statements) {
    const found = kind === "export" ? names.find(({ here }) => here === name) : undefined;
    if (found === undefined) continue;
    needed.add(found);
    return from === undefined ? needHere(fileAt, path, found.there) : need(fileAt, resolve(path, from), found.there);
  }
  if (declared.has(name)) return needHere(fileAt, path, name);
  return statements.some(({ kind, from }) => kind === "star" && need(fileAt, resolve(path, from), name));
}

/** Keeps what a name means inside a module, and everything that it uses. */
function needHere(fileAt, path, name) {
  const { statements, declared, needed } = fileAt(path);
  for (const { kind, from, names } of statements) {
    const found = kind === "import" ? names.find(({ here }) => here === name) : undefined;
    if (found === undefined || needed.has(found)) continue;
    needed.add(found);
    if (found.there === "*") needAll(fileAt, resolve(path, from));
    else if (!need(fileAt, resolve(path, from), found.there)) throw new Error(`${from} does not export ${found.there}`);
  }
  for (const statement of declared.get(name) ?? []) {
    if (needed.has(statement) || statement.kind === "schema") continue;
    needed.add(statement);
    for (const [word] of statement.text.replace(COMMENT, "").matchAll(WORD)) needHere(fileAt, path, word);
  }
  return true;
}

function resolve(path, specifier) {
  if (specifier === "abitype") return abitypeEntry;
  if (specifier.startsWith(".")) return join(dirname(path), specifier.replace(/\.[jt]s$/, ".d.ts"));
  throw new Error(`${path} needs types of ${specifier}, but fencepost-client has no dependencies`);
}

const placeOf = (path, dist) =>
  path.startsWith(abitype) ? join("abitype", relative(dirname(dirname(abitypeEntry)), path)) : relative(dist, path);

/** The file without the statements that nobody needs, and with imports of the copies. */
function print({ statements, needed }, path, dist) {
  const here = dirname(placeOf(path, dist));
  const source = (from) => {
    const place = relative(here, placeOf(resolve(path, from), dist)).replace(/\.d\.ts$/, ".js");
    return JSON.stringify(place.startsWith(".") ? place : `./${place}`);
  };
  const lines = statements.flatMap((statement) => {
    const { kind, from, names, text } = statement;
    if (kind === "star") return `${text.slice(0, text.indexOf("*"))}* from ${source(from)};`;
    if (kind === "declaration" || kind === "schema") return needed.has(statement) ? text : [];
    const kept = names.filter((name) => needed.has(name));
    if (kept.length === 0) return [];
    const words = kind === "import" ? "import type" : "export";
    const listed = kept.map(({ there, here }) => (there === here ? there : `${there} as ${here}`)).join(", ");
    return `${words} ${listed.startsWith("*") ? listed : `{ ${listed} }`}${from === undefined ? "" : ` from ${source(from)}`};`;
  });
  return `${[...new Set(lines)].join("\n")}\nexport {};\n`;
}
