import { isNode, lineOf, type Node, nameOf, type SourceFile, walk } from "../tree.ts";
import { importsOf } from "./imports.ts";

/**
 * Globals for time, randomness, environment and output: code that uses them directly cannot be controlled by a test.
 */
const GLOBALS = new Set(["console", "performance", "setImmediate", "setInterval", "setTimeout"]);
/**
 * Banned members of globals. `process` also has members that name the platform or end other processes; only the program
 * that owns the process may use those.
 */
const MEMBERS = new Set([
  "AbortSignal.timeout",
  "Date.now",
  "Math.random",
  "crypto.getRandomValues",
  "crypto.randomUUID",
  ...["argv", "cwd", "env", "exit", "exitCode", "hrtime", "nextTick", "on", "once", "stderr", "stdin", "stdout"].map(
    (name) => `process.${name}`,
  ),
]);
const MODULES = new Set(["node:console", "node:perf_hooks", "node:process", "node:timers", "node:timers/promises"]);

/** Finds each use of a global that only `adapters/system` and `main` may use. */
export function bannedGlobals(file: SourceFile): readonly string[] {
  const found = importsOf(file)
    .filter(({ target }) => MODULES.has(target))
    .map(({ target, line }) => `${file.path}:${line}: ${target}`);
  walk(file.program, (node, [parent]) => {
    if (isTypeLevel(node)) return false;
    const name = bannedUse(node, parent);
    if (name !== null) found.push(`${file.path}:${lineOf(file, node.start)}: ${name}`);
    return undefined;
  });
  return found;
}

function bannedUse(node: Node, parent: Node | undefined): string | null {
  if (node.type === "Identifier") return isReference(node, parent) && isBannedName(node, parent) ? nameOf(node) : null;
  if (node.type === "NewExpression" || node.type === "CallExpression") return currentDate(node);
  if (node.type !== "MemberExpression") return null;
  const member = `${nameOf(node.object)}.${nameOf(node.property)}`;
  if (MEMBERS.has(member)) return member;
  return nameOf(node.object) === "globalThis" && GLOBALS.has(nameOf(node.property) ?? "") ? member : null;
}

/**
 * `process.member` is checked by member. If `process` itself is passed on or destructured, this rule cannot see which
 * members are used, so it is banned.
 */
function isBannedName({ name }: Node, parent: Node | undefined): boolean {
  return GLOBALS.has(String(name)) || (name === "process" && parent?.type !== "MemberExpression");
}

/**
 * `new Date()` reads the clock; with an argument it is a conversion. `Date()` reads the clock whatever its arguments.
 */
function currentDate({ type, callee, arguments: given }: Node): string | null {
  if (nameOf(callee) !== "Date") return null;
  return type === "CallExpression" || (Array.isArray(given) && given.length === 0) ? "new Date()" : null;
}

/** True if an identifier is a reference, and not the name of a member, a key or a parameter. */
function isReference(node: Node, parent: Node | undefined): boolean {
  if (parent === undefined) return true;
  if (parent.type === "MemberExpression") return parent.object === node || parent.computed === true;
  if (parent.type === "Property") return parent.value === node;
  return !["MethodDefinition", "PropertyDefinition"].includes(parent.type);
}

/** A type such as `typeof setTimeout` only names the function and does not call it. */
function isTypeLevel({ type, expression }: Node): boolean {
  return type.startsWith("TS") && !isNode(expression);
}
