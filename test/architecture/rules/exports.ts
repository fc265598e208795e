import { isNode, type Node, nameOf, nodesIn, resolveFrom, type SourceFile, walk } from "../tree.ts";
import { declaredNames } from "./names.ts";

export interface Readers {
  /** The files in which an export may be used, including tests. */
  readonly files: readonly SourceFile[];
  /** Files whose exports are part of the public interface. */
  readonly entries: readonly string[];
}

/** Exported functions, constants and classes that no file uses, not even the file that declares them. */
export function deadExports(files: readonly SourceFile[], readers: Readers): readonly string[] {
  const read = new Set(readers.files.flatMap(namesRead));
  return files
    .filter(({ path }) => !readers.entries.includes(path) && !read.has(`${path} *`))
    .flatMap((file) => {
      const unread = exportedValues(file).filter((name) => !read.has(`${file.path} ${name}`));
      return unread.filter((name) => mentions(file, name) < 2).map((name) => `${file.path}: ${name}`);
    });
}

/** `path name` for each name that a file imports from another; `path *` if it imports the whole module. */
function namesRead(file: SourceFile): readonly string[] {
  const found: string[] = [];
  walk(file.program, (node) => {
    const specifier = nameOf(node.source);
    if (specifier === null || !specifier.startsWith(".")) return undefined;
    const path = resolveFrom(file.path, specifier);
    const names = nodesIn(node.specifiers);
    found.push(...(names.length === 0 ? ["*"] : names.map(takenName)).map((name) => `${path} ${name}`));
    return undefined;
  });
  return found;
}

function takenName({ type, imported, local }: Node): string {
  return type === "ImportNamespaceSpecifier" ? "*" : (nameOf(imported ?? local) ?? "default");
}

/** Exported types are exempt: they may exist only to name a part of a signature. */
const TYPES = new Set(["TSInterfaceDeclaration", "TSTypeAliasDeclaration"]);

function exportedValues({ program }: SourceFile): readonly string[] {
  return nodesIn(program.body)
    .filter(({ type }) => type === "ExportNamedDeclaration")
    .flatMap(({ declaration }) =>
      isNode(declaration) && !TYPES.has(declaration.type) ? declaredNames(declaration) : [],
    );
}

function mentions({ program }: SourceFile, name: string): number {
  let count = 0;
  walk(program, (node) => {
    if (node.type === "Identifier" && node.name === name) count += 1;
    return undefined;
  });
  return count;
}
