/** Checks the site that `npm run docs:build` made: the target of every link exists, including its heading. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { pagePath } from "../../../docs/.vitepress/page-paths.ts";
import { CHAPTERS } from "../../../docs/.vitepress/sidebar.ts";

const site = fileURLToPath(new URL("../../../docs/.vitepress/dist/", import.meta.url));
const source = fileURLToPath(new URL("../../../", import.meta.url));
const pages = CHAPTERS.flatMap((chapter) => chapter.pages.map(([, path]) => path))
  .filter((path) => existsSync(`${source}${path}`))
  .map((path) => pagePath(path).replace(/\.md$/, ".html"));
const read = (page: string) => readFileSync(`${site}${page}`, "utf8");
const decode = (text: string) => decodeURIComponent(text.replaceAll("&amp;", "&"));

function deadLinks(page: string): readonly string[] {
  const links = [...read(page).matchAll(/<(?:a|img|source)\b[^>]*? (?:href|src|srcset)="([^"]+)"/g)].map(
    ([, to = ""]) => to,
  );
  return links.filter((to) => {
    if (/^([a-z]+:|\/\/)/.test(to)) return false;
    const [path = "", anchor = ""] = to.split("#");
    const file = path === "" ? page : path.endsWith("/") ? `${path.slice(1)}index.html` : path.slice(1);
    const target = [file, `${file}.html`].find((each) => /\.\w+$/.test(each) && existsSync(`${site}${each}`));
    if (target === undefined) return true;
    return anchor !== "" && !read(target).includes(` id="${decode(anchor)}"`);
  });
}

describe("the documentation site", () => {
  it.each(pages)("has no dead link on %s", (page) => {
    expect(deadLinks(page)).toEqual([]);
  });

  it("has a search", () => {
    expect(read("index.html")).toContain("VPNavBarSearch");
  });
});
