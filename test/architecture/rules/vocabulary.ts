/**
 * Names of ours in documents: routes, codes, states, series. A page with a name that no longer exists misleads at 3 am.
 */
import { SUB_STATES } from "../../../src/domain/transaction/transitions.ts";

export interface Vocabulary {
  /** `get /api/v1/tx/{txId}`, … */
  readonly routes: readonly string[];
  /** Every word in capitals that the source spells: codes, states, reasons, actions. */
  readonly words: ReadonlySet<string>;
  /** `fencepost_tx_state`, … */
  readonly metrics: ReadonlySet<string>;
}

/** Every name in a document that nothing answers to. */
export function unknownNames(text: string, vocabulary: Vocabulary): readonly string[] {
  const spans = [...withoutBlocks(text).matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);
  return [
    ...unknownRoutes(text, vocabulary.routes),
    ...spans.flatMap((span) => unknownWords(span, vocabulary.words)),
    ...spans.flatMap((span) => unknownMetrics(span, vocabulary.metrics)),
  ];
}

/** Blocks that do not hold what their fence says they do. */
export function brokenJson(text: string): readonly string[] {
  return blocksOf(text, "json").filter((block) => !isJson(block) && !block.trim().split("\n").every(isJson));
}

export function blocksOf(text: string, language: string): readonly string[] {
  const fence = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms");
  return [...text.matchAll(fence)].map(([, block = ""]) => block);
}

function withoutBlocks(text: string): string {
  return text.replace(/^```.*?^```$/gms, "");
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** `POST /tx/{txId}/cancel` may leave /api/v1 out; a URL of a node has no method. Other programs' routes are not ours to know. */
function unknownRoutes(text: string, routes: readonly string[]): readonly string[] {
  const named = [...text.matchAll(/\b(GET|POST|PUT|PATCH|DELETE) (\/(?:\{[^}\s]*\}|[^\s`'",;)?{])*)/g)];
  const urls = [...text.matchAll(/\bhttp:\/\/127\.0\.0\.1:3000(\/[^\s`'",;)?>]*)/g)];
  return [
    ...named.flatMap(([all, method = "", path = ""]) =>
      expand(path).every((each) => isRoute(method.toLowerCase(), each, routes)) ? [] : [all],
    ),
    // A shell's variable in it may be anything.
    ...urls.flatMap(([all, path = ""]) =>
      path === "/" || path.includes("$") || isRoute(null, path, routes) ? [] : [all],
    ),
  ];
}

/** `{suspend,resume}` is one of several; `{signer}` is any value. */
function expand(path: string): readonly string[] {
  const list = /^(.*)\{(\w+(?:,\w+)+)\}(.*)$/.exec(path);
  if (list === null) return [path];
  const [, before = "", words = "", after = ""] = list;
  return words.split(",").map((word) => `${before}${word}${after}`);
}

function isRoute(method: string | null, path: string, routes: readonly string[]): boolean {
  const bare = path.replace(/\.$/, "").replace(/(.)\/$/, "$1");
  return routes.some((route) => {
    const [verb = "", template = ""] = route.split(" ");
    if (method !== null && verb !== method) return false;
    return [bare, `/api/v1${bare}`].some((each) => fits(each.split("/"), template.split("/")));
  });
}

/** A plain word is no id: `/tx/completion` is a slip of the pen, and not the transaction of that name. */
function fits(path: readonly string[], template: readonly string[]): boolean {
  if (path.length !== template.length) return false;
  return path.every(
    (part, at) => part === template[at] || ((template[at] ?? "").startsWith("{") && !/^[a-z-]+$/.test(part)),
  );
}

/** Names of PostgreSQL, systemd, a cloud, another relayer. */
const OF_OTHERS = new Set([
  "CLUSTER",
  "CREDENTIALS_DIRECTORY",
  "REINDEX",
  "SIGN_VERIFY",
  "TRANSACTION_EXPIRATION_HOURS",
]);

function unknownWords(span: string, words: ReadonlySet<string>): readonly string[] {
  if (!/^[A-Z][A-Z0-9_]{2,}(\/[A-Z_]+)?$/.test(span) || span.startsWith("FENCEPOST_")) return [];
  const [state = "", subState] = span.split("/");
  if (subState === undefined) return words.has(span) || OF_OTHERS.has(span) ? [] : [span];
  const known: Readonly<Record<string, readonly string[]>> = SUB_STATES;
  return known[state]?.includes(subState) ? [] : [span];
}

function unknownMetrics(span: string, metrics: ReadonlySet<string>): readonly string[] {
  const [name] = /^fencepost_[a-z_]+(?=$|\{)/.exec(span) ?? [];
  return name === undefined || metrics.has(name) ? [] : [name];
}
