/**
 * Files of the repository as pages of the site. The files link to each other by their places in the repository, so that GitHub
 * follows them too; the site has its own addresses, and each link is led there when a page is made.
 */
import { posix } from "node:path";

/** In the site, docs/ is the root and its index the first page. The few files above docs/ have a folder, as two differ only in case. */
export function pagePath(file: string): string {
  if (file === "docs/README.md") return "index.md";
  return file.startsWith("docs/") ? file.slice("docs/".length) : `project/${file}`;
}

/** Null: leads out of the site, or stays on the page. Else the target's address, or "" where the repository has no page there. */
export function siteLink(from: string, href: string, pages: ReadonlySet<string>): string | null {
  if (/^([a-z]+:|\/|#)/.test(href)) return null;
  const [path = "", anchor] = href.split("#");
  const target = posix.join(posix.dirname(from), path);
  if (!pages.has(target)) return "";
  const address = `/${pagePath(target)
    .replace(/(^|\/)index\.md$/, "$1")
    .replace(/\.md$/, "")}`;
  return anchor === undefined ? address : `${address}#${anchor}`;
}

/** GitHub's anchors, so that a link to a part of a page leads there in both places. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}
