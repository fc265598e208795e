// `npm run protections` writes docs/protections.md from the tags in the tests. A test compares the page with the tags.
//
// A tag is a comment on the line above a test's title: `// protects [section] src/file.ts, src/other.ts`. It says that the
// test fails if that code stops protecting what the title promises.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const OPENING = `# What is promised, what keeps it, and the test that fails without it

Written from the tags in the tests by \`npm run protections\`: each line is a test by its full name, the code that keeps what the name
promises, and the file of the test. Each was seen to fail with that code taken away. The attackers are in [security.md](security.md),
the answers of chain nodes in [node-answers.md](node-answers.md), the alerts in [operations/alerts.md](operations/alerts.md).
`;

const TAG = /^\s*\/\/ protects \[([^\]]+)\] (.+)$/;
/** A title behind `each(...)(`, else the first text of the line. */
const TITLES = [/\)\(\s*(?:"((?:\\.|[^"\\])*)"|`((?:\\.|[^`\\])*)`)/, /"((?:\\.|[^"\\])*)"|`((?:\\.|[^`\\])*)`/];

function titleOf(line) {
  for (const pattern of TITLES) {
    const found = pattern.exec(line);
    if (found !== null) return (found[1] ?? found[2]).replace(/\\(.)/g, "$1");
  }
  return null;
}

/** The title of the call that begins at a line; the formatter puts a long one on the next line. */
function titleAt(lines, index) {
  const line = lines[index];
  return titleOf(line.endsWith("(") ? line + lines[index + 1].trim() : line);
}

const indentOf = (line) => /^\s*/.exec(line)[0].length;

/** Titles of the suites around a line, outermost first. The formatter indents them. */
function suitesAround(lines, index) {
  const suites = [];
  let within = indentOf(lines[index]);
  for (let at = index - 1; at >= 0 && within > 0; at -= 1) {
    const line = lines[at];
    if (line.trim() === "" || indentOf(line) >= within) continue;
    within = indentOf(line);
    if (/^\s*(describe|suite)\b|^\s*\]\)\(|^\s*\}\)\(/.test(line)) suites.unshift(titleAt(lines, at) ?? "");
  }
  return suites.filter((title) => title !== "");
}

/** Every tagged test of the files: `{ section, promise, code, file, title }`. Throws if a tag has no title below it. */
export function protectionsIn(files) {
  return files.flatMap(({ path, text }) => {
    const lines = text.split("\n");
    return lines.flatMap((line, index) => {
      const tag = TAG.exec(line);
      if (tag === null) return [];
      let below = index + 1;
      while (TAG.test(lines[below])) below += 1;
      const title = titleAt(lines, below);
      if (title === null) throw new Error(`${path}:${index + 1}: the line below this tag has no title`);
      const promise = [...suitesAround(lines, below), title].join(" ");
      return [{ section: tag[1], promise, code: tag[2].split(", "), file: path, title }];
    });
  });
}

export function protectionsPage(files) {
  const sections = grouped(protectionsIn(files));
  const parts = [...sections]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([section, rows]) => {
      const lines = rows.map(({ promise, code, file }) => {
        return `| ${promise.replaceAll("|", "\\|")} | ${code.map((path) => `\`${path}\``).join(", ")} | \`${file}\` |`;
      });
      return `\n## ${section}\n\n| promise | kept by | test |\n| --- | --- | --- |\n${lines.join("\n")}\n`;
    });
  return OPENING + parts.join("");
}

function grouped(rows) {
  const sections = new Map();
  for (const row of rows) sections.set(row.section, [...(sections.get(row.section) ?? []), row]);
  return sections;
}

export function testFiles() {
  return readdirSync(join(root, "test"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(root.length + 1))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(join(root, "docs/protections.md"), protectionsPage(testFiles()));
}
