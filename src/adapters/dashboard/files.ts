import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { gzipSync } from "node:zlib";

const CONTENT_TYPES = new Map([
  [".html", "text/html; charset=utf-8"],
  [".css", "text/css; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
]);

/** Stylesheets are listed one by one, so that no other file of the folder is served. */
const STYLES = ["style.css", "top.css", "lists.css", "lane.css", "history.css"];
const SCRIPTS = [
  "app",
  "api",
  "dom",
  "formats",
  "keyboard",
  "routes",
  "search",
  "sight",
  "stages",
  "tab",
  "top",
  "world",
];
const PAGES = [
  ...["cluster", "feed", "lane", "lanes", "now", "policies", "signature", "signatures"],
  ...["transaction", "transactions", "webhook", "webhooks"],
];
const PARTS = [
  "actions",
  "approval",
  "attempts",
  "csv",
  "explanation",
  "filters",
  "history",
  "history-table",
  "lane-notices",
  "on-chain",
  "paging",
  "panels",
  "action-dialog",
  "past-alerts",
  "raise",
  "ruler",
  "scopes",
  "signed-message",
  "stretch",
  "test-transfers",
  "transaction-rows",
  "webhook-actions",
  "webhook-fields",
  "words",
];

const FILES = [
  ...STYLES,
  ...SCRIPTS.map((name) => `${name}.js`),
  ...PAGES.map((name) => `pages/${name}.js`),
  ...PARTS.map((name) => `parts/${name}.js`),
];

export interface DashboardOptions {
  /**
   * True if the node started its own development chain, which stops when the node stops. The page may then offer test
   * transfers, because the ether has no value.
   */
  readonly isDev?: boolean;
}

/** Maps the served path of each dashboard file to its content. */
export function dashboardFiles({ isDev = false }: DashboardOptions = {}) {
  const served = (name: string) => new ServedFile(name, name.endsWith(".js") ? withoutComments : (text) => text);
  const parts = FILES.map((name) => [`/dashboard/${name}`, served(name)] as const);
  return new Map([["/", new ServedFile("index.html", (page) => withParts(page, isDev))], ...parts]);
}

/** A file that never changes while the process runs. It is read and compressed once, when it is first asked for. */
class ServedFile {
  readonly contentType: string;
  private readonly name: string;
  private readonly edit: (text: string) => string;
  private read: { readonly body: Buffer; readonly gzip: Buffer } | null = null;

  constructor(name: string, edit: (text: string) => string) {
    this.name = name;
    this.edit = edit;
    this.contentType = CONTENT_TYPES.get(extname(name)) as string;
  }

  get body(): Buffer {
    return this.content().body;
  }

  get gzip(): Buffer {
    return this.content().gzip;
  }

  private content() {
    if (this.read !== null) return this.read;
    const body = Buffer.from(this.edit(readFileSync(new URL(`./public/${this.name}`, import.meta.url), "utf8")));
    this.read = { body, gzip: gzipSync(body, { level: 9 }) };
    return this.read;
  }
}

/**
 * Removes comments that fill whole lines. A quarter of the scripts is types and comments, which a browser does not need.
 */
function withoutComments(script: string): string {
  return script.replaceAll(/^[ \t]*(?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/|\/\/.*)\n/gm, "");
}

/**
 * Adds a preload link for each script, so that the browser fetches all scripts at once instead of discovering them one
 * after the other.
 */
function withParts(page: string, isDev: boolean): string {
  const scripts = FILES.filter((name) => name.endsWith(".js"));
  const links = scripts.map((name) => `  <link rel="modulepreload" href="dashboard/${name}">\n`).join("");
  const whole = page.replace("</head>", `${links}</head>`);
  return isDev ? whole.replace("<html ", "<html data-dev ") : whole;
}
