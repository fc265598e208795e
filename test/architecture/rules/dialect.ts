import { posix } from "node:path";
import { lineOf, nameOf, type SourceFile, walk } from "../tree.ts";
import { wordsOf } from "./names.ts";

/** Words of people instead of programs, each with the words to use instead. */
const REPLACED: readonly (readonly [RegExp, string])[] = [
  [/\bfates?\b/, "result or outcome"],
  [/\b(un)?told\b|\btell(s|er|ers|ing)?\b/, "request, report, notify or send"],
  [/\b(un)?heard\b|\bhear(s|ing)?\b/, "receive"],
  [/\berrands?\b|\bjourneys?\b/, "forwarded request or delivery"],
  [/\bleft lying\b|\buntaken\b/, "unowned or pending"],
  [/\bmend(s|ed|ing)?\b/, "repair"],
  [/\bstood\b/, "was or remained"],
  [/\bwhoever\b/, "the name of the role"],
];
/**
 * An order is a sequence, or a purchase of a shop. The word alone may be either; beside another word it must be one of
 * these names.
 */
const ORDER = /\border(s|ed)?\b/;
const SEQUENCES_AND_PURCHASES = new Set([
  ...["inOrder", "readInOrder", "sendInOrder", "preferOrder", "orderSteps", "WRITERS_ORDER"],
  ...["OrderedMap", "ordered-map", "orderedTrieRoot", "ordered-trie"],
  ...["CURVE_ORDER", "HALF_ORDER", "GROUP_ORDER"],
  ...["orderId", "ORDERS_SECRET"],
]);

export interface OldName {
  readonly path: string;
  readonly line: number;
  readonly name: string;
  /** The words to use instead. */
  readonly say: string;
}

/** Names that users see, and that therefore stay. */
export interface KeptName {
  readonly names: readonly string[];
  /** The files that may use the names. */
  readonly within: RegExp;
  readonly because: string;
}

export function isKept({ path, name }: OldName, { names, within }: KeptName): boolean {
  return names.includes(name) && within.test(path);
}

/** The file's name, and all identifiers in it, that contain a replaced word. */
export function oldNames(file: SourceFile): readonly OldName[] {
  const found = new Map<string, OldName>();
  const judge = (name: string, at: number): void => {
    const say = betterThan(name);
    // A shorthand such as `{ name }` has two nodes at one position.
    if (say !== null) found.set(`${name} ${at}`, { path: file.path, line: lineOf(file, at), name, say });
  };
  judge(posix.basename(file.path).split(".")[0] ?? "", 0);
  // Most files contain none of the words, and need not be parsed.
  if (MAYBE.test(file.text)) {
    walk(file.program, (node) => {
      if (node.type === "Identifier" || node.type === "PrivateIdentifier") judge(nameOf(node) ?? "", node.start);
      return undefined;
    });
  }
  return [...found.values()];
}

/** Cheap first check: matches at least everything that the lists above match. */
const MAYBE = /fate|told|tell|hear|errand|journey|lying|untaken|mend|stood|whoever|order/i;

function betterThan(name: string): string | null {
  if (!MAYBE.test(name)) return null;
  const words = wordsOf(name);
  const sentence = words.join(" ");
  const [, say] = REPLACED.find(([word]) => word.test(sentence)) ?? [];
  if (say !== undefined) return say;
  // A capital begins the name of a type: no sequence or purchase is called just `Order` here.
  const isAlone = words.length === 1 && !/^[A-Z][a-z]/.test(name);
  return isAlone || SEQUENCES_AND_PURCHASES.has(name) || !ORDER.test(sentence) ? null : "action";
}
