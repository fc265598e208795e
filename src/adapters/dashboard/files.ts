import { readFileSync } from "node:fs";
import { extname } from "node:path";

const CONTENT_TYPES = new Map([
  [".html", "text/html; charset=utf-8"],
  [".css", "text/css; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
]);

/** Named one by one: nothing is served because it happens to lie there. */
const STYLES = ["style.css", "fence.css", "lists.css"];
const SCRIPTS = ["app.js", "api.js", "dom.js", "feed.js", "lanes.js", "send.js", "stages.js", "transactions.js"];

/** Path under which it is served → file. Read once: they are small, and do not change while the process lives. */
export function dashboardFiles() {
  const read = (name: string) => ({
    contentType: CONTENT_TYPES.get(extname(name)) as string,
    body: readFileSync(new URL(`./public/${name}`, import.meta.url)),
  });
  const parts = [...STYLES, ...SCRIPTS].map((name) => [`/dashboard/${name}`, read(name)] as const);
  return new Map([["/", read("index.html")], ...parts]);
}
