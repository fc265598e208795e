/**
 * Checks Fencepost's own names in documents: routes, codes, states, metrics. A page with a name that no longer exists
 * misleads an operator at 3 am.
 */
import { SUB_STATES } from "../../../src/domain/transaction/transitions.ts";

export interface Vocabulary {
  /** Routes such as `get /api/v1/tx/{txId}`. */
  readonly routes: readonly string[];
  /** Every word in capitals that occurs in the source: codes, states, reasons, actions. */
  readonly words: ReadonlySet<string>;
  /** Metric names such as `fencepost_tx_state`. */
  readonly metrics: ReadonlySet<string>;
}

/** Finds every name in a document that the vocabulary does not contain. */
export function unknownNames(text: string, vocabulary: Vocabulary): readonly string[] {
  const spans = [...withoutBlocks(text).matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);
  return [
    ...unknownRoutes(text, vocabulary.routes),
    ...spans.flatMap((span) => unknownWords(span, vocabulary.words)),
    ...spans.flatMap((span) => unknownMetrics(span, vocabulary.metrics)),
  ];
}

/** Blocks fenced as JSON that do not parse as JSON. */
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

/**
 * Finds routes in a document that do not exist. A route may be written with its method and without /api/v1, as in `POST
 * /tx/{txId}/cancel`, or as a node's URL without a method. Routes of other programs are ignored.
 */
function unknownRoutes(text: string, routes: readonly string[]): readonly string[] {
  const named = [...text.matchAll(/\b(GET|POST|PUT|PATCH|DELETE) (\/(?:\{[^}\s]*\}|[^\s`'",;)?{])*)/g)];
  const urls = [...text.matchAll(/\bhttp:\/\/127\.0\.0\.1:3000(\/[^\s`'",;)?>]*)/g)];
  return [
    ...named.flatMap(([all, method = "", path = ""]) =>
      expand(path).every((each) => isRoute(method.toLowerCase(), each, routes)) ? [] : [all],
    ),
    // A path with a shell variable in it may be any route.
    ...urls.flatMap(([all, path = ""]) =>
      path === "/" || path.includes("$") || isRoute(null, path, routes) ? [] : [all],
    ),
  ];
}

/** Expands `{suspend,resume}` to each of its words; `{signer}` may be any value. */
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

/**
 * True if a path matches a route's template. A plain word does not match a parameter: `/tx/completion` is a typing
 * error, not a transaction with that id.
 */
function fits(path: readonly string[], template: readonly string[]): boolean {
  if (path.length !== template.length) return false;
  return path.every(
    (part, at) => part === template[at] || ((template[at] ?? "").startsWith("{") && !/^[a-z-]+$/.test(part)),
  );
}

/** Words in capitals that are not Fencepost's: names of PostgreSQL, systemd, a cloud or another relayer. */
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
