import { isNode, lineOf, type Node, nameOf, nodesIn, type SourceFile, walk } from "../tree.ts";
import { importsOf } from "./imports.ts";

const RUNNERS = new Set(["describe", "it", "suite", "test"]);
/** Banned test modifiers. With `fails` and `todo`, a test is in effect skipped but looks as if it passed. */
const EVASIONS = new Set(["fails", "only", "retry", "runIf", "skip", "skipIf", "todo"]);
const TIMERS = new Set(["setInterval", "setTimeout"]);

/**
 * Finds tests that may be skipped, that exclude other tests, or that are retried until they pass. Also finds waits for
 * a fixed time instead of for a condition.
 */
export function dishonest(file: SourceFile): readonly string[] {
  const found = importsOf(file)
    .filter(({ target }) => /^node:timers(\/promises)?$/.test(target))
    .map(({ line }) => `${file.path}:${line}: sleeps`);
  walk(file.program, (node) => {
    const what = evasion(node) ?? sleep(node);
    if (what !== null) found.push(`${file.path}:${lineOf(file, node.start)}: ${what}`);
    return undefined;
  });
  return found;
}

/** Detects `it.skip`, `describe.skipIf`, `test.concurrent.only`, `context.skip()`, `{ retry: 3 }`. */
function evasion(node: Node): string | null {
  if (node.type === "MemberExpression") {
    const name = nameOf(node.property) ?? "";
    return EVASIONS.has(name) && isRunner(node.object) ? name : null;
  }
  if (node.type !== "CallExpression" || !isRunner(node.callee)) return null;
  const keys = nodesIn(node.arguments).flatMap(({ properties }) => nodesIn(properties));
  return keys.map(({ key }) => nameOf(key) ?? "").find((key) => EVASIONS.has(key)) ?? null;
}

const REPLACING = new Set(["doMock", "mock", "resetModules", "stubEnv", "stubGlobal", "useFakeTimers"]);

/**
 * Finds changes by a test that also affect every other test in its process: modules, globals, the clock, environment
 * variables.
 */
export function replaced(file: SourceFile): readonly string[] {
  // Every replacement found below names `vi` or `env`. Most files name neither, so skip the walk of their syntax tree.
  if (!/\b(vi|env)\b/.test(file.text)) return [];
  const found: string[] = [];
  walk(file.program, (node) => {
    const what = replacement(node);
    if (what !== null) found.push(`${file.path}:${lineOf(file, node.start)}: ${what}`);
    return undefined;
  });
  return found;
}

function replacement(node: Node): string | null {
  if (node.type === "MemberExpression" && nameOf(node.object) === "vi") {
    const name = nameOf(node.property) ?? "";
    return REPLACING.has(name) ? name : null;
  }
  if (node.type === "AssignmentExpression") return isVariables(node.left) ? "process.env" : null;
  if (node.type === "UnaryExpression" && node.operator === "delete")
    return isVariables(node.argument) ? "process.env" : null;
  if (node.type !== "CallExpression" || !isNode(node.callee) || nameOf(node.callee.property) !== "assign") return null;
  return isVariables(nodesIn(node.arguments)[0]) ? "process.env" : null;
}

/** True if an expression is `process.env` or one of its variables. */
function isVariables(value: unknown): boolean {
  if (!isNode(value) || value.type !== "MemberExpression") return false;
  return (nameOf(value.object) === "process" && nameOf(value.property) === "env") || isVariables(value.object);
}

function isRunner(value: unknown): boolean {
  const name = nameOf(value);
  if (name !== null) return RUNNERS.has(name) || /^(context|task)$/.test(name);
  return isNode(value) && value.type === "MemberExpression" && isRunner(value.object);
}

/** Detects a timer of a fixed length, or a sleep on the real clock. Sleeping on the manual clock takes no real time. */
function sleep({ type, callee, arguments: given }: Node): string | null {
  if (type !== "CallExpression") return null;
  if (TIMERS.has(nameOf(callee) ?? "")) {
    const delay = nodesIn(given)[1];
    return delay !== undefined && isFixed(delay) ? "sleeps" : null;
  }
  if (!isNode(callee) || callee.type !== "MemberExpression") return null;
  return nameOf(callee.property) === "sleep" && nameOf(callee.object) === "systemClock" ? "sleeps" : null;
}

function isFixed({ type, value, name }: Node): boolean {
  return (type === "Literal" && value !== 0) || (type === "Identifier" && /^[A-Z0-9_]+$/.test(String(name)));
}
