import { readFileSync } from "node:fs";

/** A file as the HTTP server takes it. */
export interface DashboardFile {
  readonly contentType: string;
  readonly body: Buffer;
}

const HTML = "text/html; charset=utf-8";
const STYLE = "text/css; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";

/** Path under which it is served → file. Named one by one: nothing is served because it happens to lie there. */
const SERVED: ReadonlyMap<string, { readonly file: string; readonly contentType: string }> = new Map([
  ["/", { file: "index.html", contentType: HTML }],
  ...["style", "fence", "lists"].map(
    (name) => [`/dashboard/${name}.css`, { file: `${name}.css`, contentType: STYLE }] as const,
  ),
  ...["app", "api", "dom", "feed", "lanes", "send", "stages", "transactions"].map(
    (name) => [`/dashboard/${name}.js`, { file: `${name}.js`, contentType: SCRIPT }] as const,
  ),
]);

/** Reads the dashboard's files once; they are small, and do not change while the process lives. */
export function dashboardFiles(): ReadonlyMap<string, DashboardFile> {
  const directory = new URL("./public/", import.meta.url);
  return new Map(
    [...SERVED].map(([path, { file, contentType }]) => [
      path,
      { contentType, body: readFileSync(new URL(file, directory)) },
    ]),
  );
}
