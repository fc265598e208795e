/** The site as `npm run docs:build` made it: whatever a page leads to is there, to the very heading. */
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

describe("the site", () => {
  it.each(pages)("has all that %s leads to", (page) => {
    expect(deadLinks(page)).toEqual([]);
  });

  it("can be searched", () => {
    expect(read("index.html")).toContain("VPNavBarSearch");
  });
});
