/** The site that `npm run docs:build` makes of docs/ and the files beside it. A dead link fails the build. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type MarkdownRenderer, type Plugin } from "vitepress";
import { anchorOf, pagePath, siteLink } from "./page-paths.ts";
import { CHAPTERS } from "./sidebar.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const pages = new Set(
  CHAPTERS.flatMap((chapter) => chapter.pages.map(([, path]) => path)).filter((path) => existsSync(`${root}${path}`)),
);

/** What leads to a file that is no page (the source, the licence) is text here, and a link on GitHub. */
function leadLinksToPages(md: MarkdownRenderer): void {
  md.core.ruler.push("links-to-pages", ({ tokens, env }) => {
    const from = String(env.realPath ?? env.path).replace(root, "");
    for (const { children } of tokens) {
      let isText = false;
      for (const token of children ?? []) {
        if (token.type === "link_open") {
          const link = siteLink(from, token.attrGet("href") ?? "", pages);
          isText = link === "";
          if (link !== null && link !== "") token.attrSet("href", link);
          if (isText) token.attrs = [];
        }
        if (isText && token.type.startsWith("link_")) token.tag = "span";
      }
    }
  });
}

/** Pages above docs/, and Vite from there, would look for Vue in the packages of the repository, which has none. */
const packagesOfDocs: Plugin = {
  name: "packages-of-docs",
  enforce: "pre",
  resolveId(id, importer, options) {
    if (!/^vue(\/|$)/.test(id)) return null;
    if (options.ssr) return { id, external: true };
    if (importer?.startsWith(`${root}docs/`)) return null;
    return this.resolve(id, `${root}docs/README.md`, { ...options, skipSelf: true });
  },
};

export default defineConfig({
  title: "Fencepost",
  description: "Sends EVM transactions from many nodes at once, each exactly once, and follows every one to finality.",
  srcDir: "..",
  srcExclude: ["README.md", "**/node_modules/**", "{src,test,bench,scripts,deploy,examples,dist,coverage}/**"],
  cacheDir: "node_modules/.vitepress",
  rewrites: Object.fromEntries([...pages].map((path) => [path, pagePath(path)])),
  cleanUrls: true,
  // Vite would look for packages in every HTML file of the repository, the dashboard's too.
  vite: { plugins: [packagesOfDocs], optimizeDeps: { entries: [] } },
  lastUpdated: false,
  markdown: {
    config: leadLinksToPages,
    anchor: { slugify: anchorOf },
    theme: { light: "github-light", dark: "github-dark" },
  },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      { text: "Embed it", link: "/guides/start" },
      { text: "Run it as a service", link: "/guides/cluster" },
      { text: "Operate it", link: "/operations/README" },
      { text: "Review its security", link: "/guides/how-it-works" },
      { text: "Configuration", link: "/configuration" },
    ],
    sidebar: CHAPTERS.map(({ title, pages: listed }) => ({
      text: title,
      collapsed: !title.startsWith("Path") && title !== "Choose",
      items: listed
        .filter(([, path]) => pages.has(path))
        .map(([text, path]) => ({ text, link: siteLink("README.md", path, pages) ?? "/" })),
    })),
  },
});
