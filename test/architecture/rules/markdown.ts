import { posix } from "node:path";
import { anchorOf } from "../../../docs/.vitepress/page-paths.ts";

/** The names that exist in the repository, against which documents are checked. */
export interface Facts {
  /** Every file's path from the repository's root. */
  readonly files: readonly string[];
  /** Reads a markdown file, for its headings. */
  readonly read: (path: string) => string;
  readonly scripts: ReadonlySet<string>;
  readonly binaries: ReadonlySet<string>;
  /** Subpath exports of the package: `.`, `./client`, … */
  readonly subpaths: ReadonlySet<string>;
  readonly commands: ReadonlySet<string>;
  readonly options: ReadonlySet<string>;
  readonly variables: ReadonlySet<string>;
}

interface Passage {
  readonly line: number;
  readonly text: string;
  readonly kind: "prose" | "span" | "block";
}

/** Finds everything that a document names but that does not exist. */
export function brokenReferences(path: string, facts: Facts): readonly string[] {
  const passages = passagesOf(facts.read(path));
  const judge = (passage: Passage): readonly string[] => {
    if (passage.kind === "prose") return brokenLinks(passage.text, path, facts);
    const paths =
      passage.kind === "span" ? [passage.text] : [...passage.text.matchAll(PATH_IN_BLOCK)].map(([at]) => at);
    return [...paths.filter((at) => isMissing(at, facts)), ...brokenCommands(passage.text, facts)];
  };
  return passages.flatMap((passage) =>
    [...judge(passage), ...unknownVariables(passage.text, facts)].map((what) => `${path}:${passage.line}: ${what}`),
  );
}

const PATH_IN_BLOCK = /(?<![\w./-])(?:src|test|docs|scripts|bench|bin|\.ci)\/[\w./-]*\w/g;

/**
 * Splits a document into passages. Each line of a fenced block is one passage. Outside of fenced blocks, each code span
 * is a passage, and so is each line with its code spans blanked out.
 */
function passagesOf(text: string): readonly Passage[] {
  let fenced = false;
  return text.split("\n").flatMap((raw, index): readonly Passage[] => {
    const line = index + 1;
    if (/^\s*(```|~~~)/.test(raw)) {
      fenced = !fenced;
      return [];
    }
    if (fenced) return [{ line, text: raw, kind: "block" }];
    const spans = [...raw.matchAll(/`([^`]+)`/g)].map(([, span = ""]) => ({ line, text: span, kind: "span" }) as const);
    return [{ line, text: raw.replace(/`[^`]+`/g, "`code`"), kind: "prose" }, ...spans];
  });
}

function brokenLinks(text: string, from: string, facts: Facts): readonly string[] {
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g), ...text.matchAll(/\b(?:src|srcset|href)="([^"\s]+)"/g)];
  const targets = links.map(([, target = ""]) => target);
  return targets.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [file = "", anchor] = target.split("#");
    const path = file === "" ? from : posix.join(posix.dirname(from), file);
    if (!isThere(path, facts.files)) return true;
    return anchor !== undefined && !headingsOf(facts.read(path)).includes(anchor);
  });
}

function headingsOf(text: string): readonly string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => anchorOf(title));
}

/**
 * Folders to which a path in a document may be relative: the root, or a folder of src if the page is only about the
 * code.
 */
const BASES = ["", "src/", "src/application/"];
const OUR_FOLDER = /^(src|test|docs|scripts|bench|bin|\.ci)\//;
const FILE_NAME = /\.(ts|js|mjs|md|sql|json|html|css)$/;
/** Paths that are not in the repository: the reader's own files, and output of running or building. */
const NOT_HERE = /^(fencepost\.config\.(ts|js|json)$|\.fencepost\/|dist\/|coverage\/|node_modules\/)/;

function isMissing(span: string, facts: Facts): boolean {
  if (!/^[\w.*-][\w.*{},/-]*$/.test(span) || NOT_HERE.test(span)) return false;
  if (span.startsWith("fencepost/")) return !facts.subpaths.has(span.replace("fencepost", "."));
  if (!span.includes("/")) {
    return FILE_NAME.test(span) && !facts.files.some((path) => posix.basename(path) === span);
  }
  const [first = ""] = span.split("/");
  const isPath =
    FILE_NAME.test(span) ||
    OUR_FOLDER.test(span) ||
    BASES.some((base) => first !== "*" && isThere(`${base}${first}`, facts.files));
  // `application/json` looks like a path under src, but it is a media type.
  if (!isPath || span === "application/json") return false;
  return expand(span).some((path) => !BASES.some((base) => isThere(`${base}${path}`, facts.files)));
}

/**
 * Expands a path: `a/{b,c}.ts` → `a/b.ts` and `a/c.ts`. A path with a star is reduced to the folder before the star:
 * `test/*.ts` → `test`.
 */
function expand(span: string): readonly string[] {
  const braces = /^(.*)\{([^}]*)\}(.*)$/.exec(span);
  if (braces === null) return [span.replace(/\/?[^/]*\*.*$/, "")];
  const [, before = "", list = "", after = ""] = braces;
  return list.split(",").flatMap((item) => expand(`${before}${item}${after}`));
}

function isThere(path: string, files: readonly string[]): boolean {
  const bare = path.replace(/\/$/, "");
  return bare === "" || bare === "." || files.some((file) => file === bare || file.startsWith(`${bare}/`));
}

/** Checks `npm run x`, `npm test`, `npx x` and `fencepost x --option` anywhere in a line of code. */
function brokenCommands(text: string, { scripts, binaries, commands, options }: Facts): readonly string[] {
  const broken: string[] = [];
  for (const [, name = ""] of text.matchAll(/\bnpm run ([\w:-]+)/g))
    if (!scripts.has(name)) broken.push(`npm run ${name}`);
  for (const [, name = ""] of text.matchAll(/\bnpm (test|start)\b/g))
    if (!scripts.has(name)) broken.push(`npm ${name}`);
  for (const [, name = ""] of text.matchAll(/\bnpx (?:--\S+ )*([\w@/-]+)/g))
    if (!binaries.has(name)) broken.push(`npx ${name}`);
  for (const [, rest = ""] of text.matchAll(/(?:^|npx |[$|&;] ?)fencepost((?: +[^|&;#]*)?)/g)) {
    const [command] = rest.trim().split(/\s+/);
    if (command !== undefined && /^[a-z]/.test(command) && !commands.has(command)) broken.push(`fencepost ${command}`);
    for (const [option] of rest.matchAll(/--[a-z-]+/g)) if (!options.has(option)) broken.push(`fencepost ${option}`);
  }
  return broken;
}

function unknownVariables(text: string, { variables }: Facts): readonly string[] {
  return [...text.matchAll(/\bFENCEPOST_[A-Z0-9_]*[A-Z0-9]\b/g)]
    .map(([name]) => name)
    .filter((name) => !variables.has(name));
}
