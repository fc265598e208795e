import { posix } from "node:path";
import { isNode, lineOf, type Node, nameOf, nodesIn, type SourceFile, walk } from "../tree.ts";

/** Words that do not say what a file or export is for. */
const EMPTY_WORDS = new Set(["manager", "managers", "helper", "helpers", "util", "utils", "common"]);

export function emptyNames(file: SourceFile): readonly string[] {
  const names = [...exportedNames(file), ...posix.basename(file.path).split(".").slice(0, -1)];
  return names
    .filter((name) => wordsOf(name).some((word) => EMPTY_WORDS.has(word)))
    .map((name) => `${file.path}: ${name}`);
}

/** Entry files of the package are called `index`, and may share this name. */
const ENTRY = "index";
const TOO_NEAR = 2;

/**
 * Pairs of files with the same name whose folders are at most two steps apart: a reader who looks for one opens the
 * other by mistake.
 */
export function sharedNames(paths: readonly string[]): readonly string[] {
  const byName = new Map<string, string[]>();
  for (const path of paths) {
    const name = posix.parse(path).name;
    if (name !== ENTRY) byName.set(name, [...(byName.get(name) ?? []), path]);
  }
  return [...byName.values()].flatMap((alike) =>
    alike.flatMap((path, at) =>
      alike
        .slice(at + 1)
        .filter((other) => stepsBetween(posix.dirname(path), posix.dirname(other)) <= TOO_NEAR)
        .map((other) => `${path} and ${other}`),
    ),
  );
}

function stepsBetween(folder: string, other: string): number {
  const way = posix.relative(folder, other);
  return way === "" ? 0 : way.split("/").length;
}

/** The words of a name in camel case, snake case or kebab case, in lower case. */
export function wordsOf(name: string): readonly string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.toLowerCase());
}

/** The exported names of a file, from declarations and lists. A `default` export counts under its own name. */
export function exportedNames({ program }: SourceFile): readonly string[] {
  return nodesIn(program.body)
    .filter(({ type }) => /^Export(Named|Default)Declaration$/.test(type))
    .flatMap(namesOf);
}

function namesOf({ declaration, specifiers }: Node): readonly string[] {
  if (!isNode(declaration)) return nodesIn(specifiers).flatMap(({ exported }) => nameOf(exported) ?? []);
  return declaredNames(declaration);
}

/** The names that a declaration declares; `const a = 1, b = 2` declares two. */
export function declaredNames(declaration: Node): readonly string[] {
  const several = nodesIn(declaration.declarations);
  return (several.length > 0 ? several : [declaration]).flatMap(({ id }) => nameOf(id) ?? []);
}

/** Finds comments and casts that suppress the compiler's checks. */
export function escapeHatches(file: SourceFile): readonly string[] {
  const found = [...file.text.matchAll(/@ts-(?:ignore|expect-error|nocheck)/g)].map(
    ({ 0: directive, index }) => `${file.path}:${lineOf(file, index)}: ${directive}`,
  );
  walk(file.program, (node) => {
    const hatch = hatchOf(node);
    if (hatch !== null) found.push(`${file.path}:${lineOf(file, node.start)}: ${hatch}`);
    return undefined;
  });
  return found;
}

function hatchOf({ type, definite }: Node): string | null {
  if (type === "TSAnyKeyword") return "any";
  return type === "TSNonNullExpression" || definite === true ? "!" : null;
}
