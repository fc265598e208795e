/** Puts all mutants of a source file into it, each behind a switch. */
import { parseSync } from "rolldown/utils";
import { type Mutant, mutated } from "./mutant.ts";

/** Node of a syntax tree (ESTree). */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** A node and its place: the field of its parent. */
interface Placed {
  readonly node: Node;
  readonly field: string;
  readonly parent: Placed | null;
}

/** Part of the source that a mutant replaces. */
interface Change {
  readonly id: number;
  readonly kind: "either" | "choice" | "block" | "guard" | "statements";
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

interface Switched {
  readonly code: string;
  /** Mutants that no switch can make, as those of declarations. */
  readonly left: readonly number[];
}

const IMPORT = `import { either as either$, isOn as isOn$ } from ${JSON.stringify(new URL("./switchboard.ts", import.meta.url).pathname)};\n`;

/** Fields in which an expression is used for its value and for nothing else. */
const VALUES: ReadonlySet<string> = new Set([
  ...[
    "VariableDeclarator.init",
    "ReturnStatement.argument",
    "ExpressionStatement.expression",
    "ThrowStatement.argument",
  ],
  ...["IfStatement.test", "WhileStatement.test", "DoWhileStatement.test", "ForStatement.test", "ForOfStatement.right"],
  ...["BinaryExpression.left", "BinaryExpression.right", "LogicalExpression.left", "LogicalExpression.right"],
  ...["ConditionalExpression.test", "ConditionalExpression.consequent", "ConditionalExpression.alternate"],
  ...["CallExpression.arguments", "NewExpression.arguments", "ArrayExpression.elements", "SpreadElement.argument"],
  ...[
    "AssignmentExpression.right",
    "AssignmentPattern.right",
    "ArrowFunctionExpression.body",
    "UnaryExpression.argument",
  ],
  ...["AwaitExpression.argument", "TemplateLiteral.expressions", "ParenthesizedExpression.expression"],
  ...["TSAsExpression.expression", "TSNonNullExpression.expression", "TSSatisfiesExpression.expression"],
  ...["PropertyDefinition.value", "SwitchStatement.discriminant", "SequenceExpression.expressions"],
]);
const EXPRESSION = /^(?:Identifier|Literal|TemplateLiteral|ThisExpression)$|Expression$/;
/** Expressions that cannot be evaluated twice, or not in a function of their own. */
const IMPURE = /^(?:Await|Yield|Assignment|Update)Expression$/;
/** Methods without side effects. Functions of the domain have none, except those named below. */
const PURE_METHOD =
  /^(?:at|entries|every|filter|find|flatMap|get|getTime|has|includes|keys|map|max|min|slice|some|values)$/;
const CHANGING_METHOD = /^(?:add|apply|clear|delete|next|pop|push|record|reverse|set|shift|sort|splice|unshift)/;

/** The source with a switch for each mutant, by its number. */
export function switchedSource(source: string, file: string, mutants: ReadonlyMap<number, Mutant>): Switched {
  const before = placedIn(source);
  const changes = [...mutants].map(([id, mutant]) => ({ id, change: changeOf(id, { source, before, file, mutant }) }));
  const made = changes.flatMap(({ change }) => change ?? []);
  const left = changes.flatMap(({ id, change }) => (change === null ? [id] : []));
  return { code: IMPORT + withChanges(source, { start: 0, end: source.length }, made), left };
}

/** All nodes of a source, by their range; nodes with the same range begin with the outermost. */
function placedIn(source: string): ReadonlyMap<string, readonly Placed[]> {
  const places = new Map<string, Placed[]>();
  const visit = (value: unknown, field: string, parent: Placed | null): void => {
    if (Array.isArray(value)) for (const each of value) visit(each, field, parent);
    else if (isNode(value)) {
      const placed = { node: value, field, parent };
      const key = `${value.start}:${value.end}`;
      places.set(key, [...(places.get(key) ?? []), placed]);
      for (const [name, each] of Object.entries(value)) visit(each, name, placed);
    }
  };
  visit(parseSync("source.ts", source).program, "", null);
  return places;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

interface Task {
  readonly source: string;
  readonly before: ReadonlyMap<string, readonly Placed[]>;
  readonly file: string;
  readonly mutant: Mutant;
}

function changeOf(id: number, task: Task): Change | null {
  const { source, before, file, mutant } = task;
  const removed = removedStatements(id, task);
  if (removed !== null) return removed;
  const after = mutated(mutant, source);
  const [start, end] = differenceOf(source, after);
  const longer = after.length - source.length;
  const rest = placedIn(after);
  const around = [...before.values()].flat().filter(({ node }) => node.start <= start && end <= node.end);
  const smallestFirst = around.sort((a, b) => a.node.end - a.node.start - (b.node.end - b.node.start));
  for (const placed of smallestFirst) {
    const { node } = placed;
    const others = rest.get(`${node.start}:${node.end + longer}`) ?? [];
    const text = after.slice(node.start, node.end + longer);
    const at = { id, start: node.start, end: node.end, text };
    const isBlock = node.type === "BlockStatement";
    if (isBlock && others.some(({ node: { type } }) => type === "BlockStatement")) return { ...at, kind: "block" };
    const other = others.find(isValue);
    if (!isValue(placed) || other === undefined) continue;
    const isPure = [placed, other].every((each) => isPureIn(file, each.node));
    return { ...at, kind: isPure ? "either" : "choice" };
  }
  return null;
}

/** Range of the source that differs from the other one. */
function differenceOf(source: string, other: string): readonly [start: number, end: number] {
  let start = 0;
  while (start < source.length && source[start] === other[start]) start++;
  let same = 0;
  const most = Math.min(source.length, other.length) - start;
  while (same < most && source[source.length - 1 - same] === other[other.length - 1 - same]) same++;
  return [start, source.length - same];
}

/** A mutant that only removes statements, or null. If it removes one `if`, only a true condition makes a difference. */
function removedStatements(id: number, { source, before, mutant: { find, replace } }: Task): Change | null {
  if (replace.trim() !== "") return null;
  const start = source.indexOf(find) + find.length - find.trimStart().length;
  const end = start + find.trim().length;
  const [whole] = before.get(`${start}:${end}`) ?? [];
  if (whole === undefined || !/^(?:If|Expression|Return|Throw)Statement$/.test(whole.node.type)) return null;
  const { test, alternate } = whole.node;
  if (whole.node.type !== "IfStatement" || !isNode(test) || alternate !== null)
    return { id, kind: "statements", start, end, text: "" };
  return { id, kind: "guard", start: test.start, end: test.end, text: "" };
}

function isValue({ node, field, parent }: Placed): boolean {
  if (parent === null || !EXPRESSION.test(node.type)) return false;
  const { node: above } = parent;
  const place = `${above.type}.${field}`;
  if (place === "UnaryExpression.argument") return above.operator !== "delete" && above.operator !== "typeof";
  if (place === "Property.value")
    return above.shorthand !== true && above.method !== true && parent.parent?.node.type === "ObjectExpression";
  if (place === "MemberExpression.property") return above.computed === true;
  if (place === "MemberExpression.object") return node.type !== "Super" && !isInChain(parent);
  return VALUES.has(place);
}

/** True if the node may be a part of `a?.b.c`, which must not be torn apart. */
function isInChain({ node, field, parent }: Placed): boolean {
  if (node.type === "ChainExpression") return true;
  return parent !== null && (field === "object" || field === "callee" || field === "expression") && isInChain(parent);
}

function isPureIn(file: string, node: Node): boolean {
  if (IMPURE.test(node.type)) return false;
  if (node.type === "CallExpression" && !isPureCall(file, node)) return false;
  return Object.values(node).every((value) =>
    Array.isArray(value)
      ? value.every((each) => !isNode(each) || isPureIn(file, each))
      : !isNode(value) || isPureIn(file, value),
  );
}

function isPureCall(file: string, { callee }: Node): boolean {
  if (!isNode(callee)) return false;
  const named = isNode(callee.property) ? callee.property.name : callee.name;
  const name = typeof named === "string" ? named : "";
  if (file.startsWith("src/domain/")) return !CHANGING_METHOD.test(name);
  return callee.type === "MemberExpression" && PURE_METHOD.test(name);
}

/** The range with all changes inside of it: a change of a part is in the original branch of a change around it. */
function withChanges(
  source: string,
  { start, end }: Pick<Change, "start" | "end">,
  changes: readonly Change[],
): string {
  const inside = changes.filter((each) => start <= each.start && each.end <= end);
  const outermost = inside.filter(
    (each) =>
      !inside.some(
        (other) => isAround(other, each) || (isSame(other, each) && inside.indexOf(other) < inside.indexOf(each)),
      ),
  );
  let [code, at] = ["", start];
  for (const change of [...outermost].sort((a, b) => a.start - b.start)) {
    const rest = inside.filter((each) => each !== change && (isAround(change, each) || isSame(change, each)));
    code += source.slice(at, change.start) + branched(change, withChanges(source, change, rest));
    at = change.end;
  }
  return code + source.slice(at, end);
}

const isSame = (one: Change, other: Change) => one.start === other.start && one.end === other.end;
const isAround = (one: Change, other: Change) =>
  one.start <= other.start && other.end <= one.end && !isSame(one, other);

function branched({ id, kind, text }: Change, original: string): string {
  switch (kind) {
    case "either":
      return `either$(${id}, () => (${original}), () => (${text}))`;
    case "choice":
      return `(isOn$(${id}) ? (${text}) : (${original}))`;
    case "block":
      return `{ if (isOn$(${id})) ${text} else ${original} }`;
    case "guard":
      return `(${original}) && !isOn$(${id})`;
    case "statements":
      return `if (!isOn$(${id})) { ${original} }`;
  }
}
