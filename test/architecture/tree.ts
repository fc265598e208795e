import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, extname, join, posix, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "vitest/node";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A syntax node as the parser behind Vitest gives it: ESTree with TypeScript's nodes in it. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

export interface SourceFile {
  /** From the repository's root, with slashes. */
  readonly path: string;
  readonly text: string;
  readonly program: Node;
}

const CODE = new Set([".ts", ".js", ".mjs"]);
/** Made by tools or by running the thing; never written by people. */
const NOT_OURS = new Set(["node_modules", "dist", "coverage", ".git", ".fencepost"]);

export function parseSource(path: string, text: string): SourceFile {
  const lang = extname(path) === ".ts" ? "ts" : "js";
  let program: Node | null = null;
  return {
    path,
    text,
    // Parsed when a rule first asks: parsing the tree takes two seconds, and some rules read only paths or texts.
    get program() {
      program ??= parseAst(text, { lang }, path) as unknown as Node;
      return program;
    },
  };
}

/** Every file below a folder of the repository, sorted. */
export function listFiles(folder: string): readonly string[] {
  const absolute = join(ROOT, folder);
  if (!existsSync(absolute)) return [];
  return readdirSync(absolute, { withFileTypes: true })
    .filter((entry) => !NOT_OURS.has(entry.name))
    .flatMap((entry) => {
      const path = posix.join(folder, entry.name);
      return entry.isDirectory() ? listFiles(path) : [path];
    })
    .sort();
}

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

const parsed = new Map<string, SourceFile>();

/** The code below a folder, read and parsed once per process. */
export function readCode(folder: string): readonly SourceFile[] {
  return listFiles(folder)
    .filter((path) => CODE.has(extname(path)))
    .map((path) => {
      const file = parsed.get(path) ?? parseSource(path, readText(path));
      parsed.set(path, file);
      return file;
    });
}

/** Visits each node with those around it, innermost first; `false` keeps out of what is below. */
export function walk(
  node: Node,
  visit: (node: Node, ancestors: readonly Node[]) => false | undefined,
  ancestors: readonly Node[] = [],
): void {
  if (visit(node, ancestors) === false) return;
  const children = childrenOf(node);
  if (children.length === 0) return;
  const around = [node, ...ancestors];
  for (const child of children) walk(child, visit, around);
}

/** A loop over the fields and no list of them: the rules visit millions of nodes. */
function childrenOf(node: Node): readonly Node[] {
  const children: Node[] = [];
  for (const field in node) {
    const value = node[field];
    if (typeof value !== "object" || value === null) continue;
    if (!Array.isArray(value)) {
      if (isNode(value)) children.push(value);
      continue;
    }
    for (const item of value) if (isNode(item)) children.push(item);
  }
  return children;
}

/** The nodes of a list such as `params` or `specifiers`; empty if there is no such list. */
export function nodesIn(value: unknown): readonly Node[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

/** The name of an identifier, or the text of a string literal; else null. */
export function nameOf(value: unknown): string | null {
  if (!isNode(value)) return null;
  if (value.type === "Identifier" || value.type === "PrivateIdentifier") return String(value.name);
  return value.type === "Literal" && typeof value.value === "string" ? value.value : null;
}

export function lineOf({ text }: SourceFile, position: number): number {
  return text.slice(0, position).split("\n").length;
}

export function countLines(text: string): number {
  return text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** Target of a relative import of a file, from the repository's root. */
export function resolveFrom(path: string, specifier: string): string {
  return relative(".", join(dirname(path), specifier))
    .split(sep)
    .join("/");
}
