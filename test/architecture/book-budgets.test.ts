/** Keeps the book short enough to be read: words in all, words for adopters, pages on a path, a purpose on every page. */
import { posix } from "node:path";
import { describe, expect, it } from "vitest";
import { CHAPTERS, PATHS } from "../../docs/.vitepress/sidebar.ts";
import { listFiles, readText } from "./tree.ts";

/** Written by `npm run protections` and `npm run licences`. */
const GENERATED = ["docs/protections.md", "docs/licences.md"];
const MOST_WORDS = 75_000;
const MOST_WORDS_FOR_ADOPTERS = 40_000;
const MOST_PAGES_ON_A_PATH = 6;

const pages = listFiles("docs").filter((path) => path.endsWith(".md"));
/** A page without the tables that a script writes into it, such as those of `npm run docs:cli`. */
const byHand = (text: string) => text.replace(/^<!-- written by npm run .*?^<!-- end of what npm run .*?-->$/gms, "");
const wordsIn = (path: string) => byHand(readText(path)).trim().split(/\s+/).length;
const wordsOf = (paths: readonly string[]) => paths.reduce((sum, path) => sum + wordsIn(path), 0);

/** The text between a page's title and the next heading, table, list, picture or code block. */
function purposeOf(text: string): string {
  const [, title = "", rest = ""] = /^# (.+)\n+([\s\S]*)$/.exec(text) ?? [];
  return title === "" ? "" : (/^(?!#|\||>|!\[|```|- |\d+\. )[\s\S]*?(?=\n\n|$)/.exec(rest)?.[0].trim() ?? "");
}

/** Words that speak of programs as of people. Write report, receive, repair, outcome instead. */
const REPLACED_WORDS =
  /\b(?:(?:un)?told|tell(?:s|ers?|ing)?|(?:un)?heard|hear(?:s|ing)?|errands?|journeys?|untaken|mend(?:s|ed|ing)?|fates?)\b/i;

/** The prose of a page: without code blocks and code spans. */
const proseOf = (text: string) => text.replace(/^```.*?^```$/gms, "").replace(/`[^`\n]*`/g, "");

describe("the book", () => {
  it(`has at most ${MOST_WORDS} words, generated pages and tables not counted`, () => {
    expect(wordsOf(pages.filter((path) => !GENERATED.includes(path)))).toBeLessThanOrEqual(MOST_WORDS);
  });

  it(`has at most ${MOST_WORDS_FOR_ADOPTERS} words for adopters`, () => {
    const adopters = CHAPTERS.filter(({ audience }) => audience === "adopters").flatMap((chapter) =>
      chapter.pages.map(([, path]) => path),
    );
    expect(adopters.length).toBeGreaterThan(20);
    expect(wordsOf(adopters)).toBeLessThanOrEqual(MOST_WORDS_FOR_ADOPTERS);
  });

  it.each(pages)("says at the top of %s what the page is for", (path) => {
    expect(purposeOf(readText(path)).split(/\s+/).length).toBeGreaterThanOrEqual(8);
  });

  it.each([...pages.filter((path) => !GENERATED.includes(path)), "README.md", "SECURITY.md"])(
    "uses the words of the trade in %s",
    (path) => {
      const lines = proseOf(readText(path)).split("\n");
      expect(lines.filter((line) => REPLACED_WORDS.test(line))).toEqual([]);
    },
  );

  it("leaves out tables that a script writes, and counts the text around them", () => {
    const table = "<!-- written by npm run docs:cli -->\n| a | b |\n<!-- end of what npm run docs:cli writes -->";
    expect(byHand(`one\n${table}\ntwo\n`)).toBe("one\n\ntwo\n");
    expect(byHand(readText("docs/cli.md")).length).toBeLessThan(readText("docs/cli.md").length);
  });

  it("recognises a replaced word in prose, and not in code", () => {
    expect(proseOf("Callers are told.")).toMatch(REPLACED_WORDS);
    expect(proseOf("It has `told`.\n\n```sh\ntell\n```\n")).not.toMatch(REPLACED_WORDS);
  });

  it.each([
    ["# A title\n\n## A part\n"],
    ["# A title\n\n| a | table |\n"],
    ["# A title\n\n```sh\nls\n```\n"],
    ["# A title\n\n![a picture](a.svg)\n"],
    ["No title, only text."],
  ])("finds no purpose in %j", (text) => {
    expect(purposeOf(text)).toBe("");
  });
});

describe.each(PATHS)("the path $title", ({ pages: listed, picture }) => {
  const paths = listed.map(([, path]) => path);
  const [first = ""] = paths;
  const last = paths.at(-1) ?? "";
  const fileOf = (path: string) => path.replace(/^docs\//, "");

  const section =
    readText("docs/README.md")
      .split(/^## /m)
      .find((part) => part.includes(fileOf(picture))) ?? "";

  it("has at most six pages, listed in this order in docs/README.md", () => {
    expect(paths.length).toBeLessThanOrEqual(MOST_PAGES_ON_A_PATH);
    const links = [...section.matchAll(/^\d\. \[[^\]]+\]\(([^)]+)\)/gm)].map(([, link = ""]) => link);
    expect(links).toEqual(paths.map((path) => (path.startsWith("docs/") ? fileOf(path) : `../${path}`)));
  });

  it("leads from each page that is written by hand to the next one", () => {
    const written = paths.slice(0, -1).filter((path) => !GENERATED.includes(path));
    const next = (path: string) => posix.relative(posix.dirname(path), paths[paths.indexOf(path) + 1] ?? "");
    const lastLine = (path: string) => readText(path).trimEnd().split("\n").at(-1) ?? "";
    expect(written.filter((path) => !lastLine(path).startsWith("Next on this path: ["))).toEqual([]);
    expect(written.filter((path) => !lastLine(path).includes(`](${next(path)})`))).toEqual([]);
  });

  it("says at its beginning, with a picture, and at its end what the reader can do", () => {
    expect(section).toMatch(/\*\*At its end you can\*\*/);
    expect(readText(first)).toContain(picture.split("/").at(-1));
    expect(readText(first)).toMatch(/\*\*At the end of this path you can\*\*/);
    expect(readText(last)).toMatch(/\*\*You can now\*\*/);
  });
});
