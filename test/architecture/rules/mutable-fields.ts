import { isNode, lineOf, type Node, nameOf, nodesIn, resolveFrom, type SourceFile, walk } from "../tree.ts";

interface Declared {
  readonly file: SourceFile;
  readonly node: Node;
}

const TYPES = new Set(["ClassDeclaration", "TSInterfaceDeclaration", "TSTypeAliasDeclaration"]);
const PROPERTIES = new Set(["PropertyDefinition", "TSPropertySignature"]);

/**
 * Every reassignable property of a type and, recursively, of its properties' types, as `Type.name`. Type names and
 * constructed classes are followed through imports, within the given files.
 */
export function mutableFields(files: readonly SourceFile[], path: string, type: string): readonly string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const root = find(byPath, byPath.get(path), type);
  const reached = new Set<Node>();
  const found: string[] = [];
  const queue = root === null ? [] : [root];
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const { file, node } = next;
    if (reached.has(node)) continue;
    reached.add(node);
    for (const property of propertiesOf(node)) {
      if (property.readonly !== true) found.push(`${nameOf(node.id)}.${nameOf(property.key)}`);
      for (const name of namesIn(property)) {
        const declared = find(byPath, file, name);
        if (declared !== null) queue.push(declared);
      }
    }
    if (node.type === "TSTypeAliasDeclaration") {
      for (const name of namesIn(node)) queue.push(...[find(byPath, file, name)].filter((each) => each !== null));
    }
  }
  return found;
}

/** The properties of a type, including those of inline types. */
function propertiesOf(node: Node): readonly Node[] {
  const found: Node[] = [];
  walk(node, (each) => {
    if (PROPERTIES.has(each.type) && each.static !== true) found.push(each);
    return each.type === "MethodDefinition" || each.type === "TSMethodSignature" || isCode(each) ? false : undefined;
  });
  return found;
}

function isCode({ type }: Node): boolean {
  return type === "ArrowFunctionExpression" || type === "FunctionExpression" || type === "TSFunctionType";
}

function namesIn(node: Node): readonly string[] {
  const names: string[] = [];
  walk(node, (each) => {
    if (isCode(each) || each.type === "TSMethodSignature") return false;
    const named = each.type === "TSTypeReference" ? each.typeName : each.type === "NewExpression" ? each.callee : null;
    const name = nameOf(named);
    if (name !== null) names.push(name);
    return undefined;
  });
  return names;
}

function find(files: ReadonlyMap<string, SourceFile>, file: SourceFile | undefined, name: string): Declared | null {
  if (file === undefined) return null;
  for (const statement of nodesIn(file.program.body)) {
    const node = isNode(statement.declaration) ? statement.declaration : statement;
    if (TYPES.has(node.type) && nameOf(node.id) === name) return { file, node };
    const from = nameOf(statement.source);
    if (from === null) continue;
    for (const each of nodesIn(statement.specifiers)) {
      const isImport = statement.type === "ImportDeclaration";
      if (nameOf(isImport ? each.local : each.exported) !== name) continue;
      const original = nameOf(isImport ? each.imported : each.local) ?? name;
      return find(files, files.get(resolveFrom(file.path, from)), original);
    }
  }
  return null;
}

const ENDLESS = new Set(["POSITIVE_INFINITY", "NEGATIVE_INFINITY", "MIN_SAFE_INTEGER", "MAX_SAFE_INTEGER"]);
const KEEPERS = new Set(["AssignmentExpression", "PropertyDefinition", "VariableDeclarator", "Property"]);

/**
 * Finds Infinity used in fields that hold times, to mean "never" or "always". `src/domain/pace/when.ts` has names for
 * such times.
 */
export function sentinelTimes(file: SourceFile): readonly string[] {
  const found: string[] = [];
  walk(file.program, (node) => {
    if (!KEEPERS.has(node.type)) return undefined;
    const target = node.left ?? node.key ?? node.id;
    const name = nameOf(isNode(target) && target.type === "MemberExpression" ? target.property : target) ?? "";
    const value = node.right ?? node.value ?? node.init;
    if (/(Ms|At)$/.test(name) && isEndless(value)) found.push(`${file.path}:${lineOf(file, node.start)}: ${name}`);
    return undefined;
  });
  return found;
}

const ANSWERS: ReadonlyMap<string, string> = new Map([
  ["ReturnStatement", "argument"],
  ["ArrowFunctionExpression", "body"],
  ["PropertyDefinition", "value"],
  ["AssignmentExpression", "right"],
]);

/**
 * Finds Infinity that is returned or stored in a field, and invalid dates. Infinity as a default limit of a parameter
 * is allowed.
 */
export function nonAnswers(file: SourceFile): readonly string[] {
  const found: string[] = [];
  walk(file.program, (node) => {
    const [first] = nodesIn(node.arguments);
    const isNoDate = node.type === "NewExpression" && nameOf(node.callee) === "Date" && isNotANumber(first);
    const isAnswer = isEndless(node[ANSWERS.get(node.type) ?? ""]);
    if (isNoDate || isAnswer) found.push(`${file.path}:${lineOf(file, node.start)}`);
    return undefined;
  });
  return found;
}

function isNotANumber(value: unknown): boolean {
  return isNode(value) && nameOf(value.type === "MemberExpression" ? value.property : value) === "NaN";
}

function isEndless(value: unknown): boolean {
  if (!isNode(value)) return false;
  if (value.type === "UnaryExpression") return isEndless(value.argument);
  if (value.type === "ConditionalExpression") return isEndless(value.consequent) || isEndless(value.alternate);
  if (value.type === "LogicalExpression") return isEndless(value.right);
  return (
    nameOf(value) === "Infinity" || (value.type === "MemberExpression" && ENDLESS.has(nameOf(value.property) ?? ""))
  );
}

const ASSIGNED: ReadonlyMap<string, string> = new Map([
  ["AssignmentExpression", "left"],
  ["UpdateExpression", "argument"],
]);

/**
 * Places that assign the field `Class.name` after construction. An assignment to `this.name` counts only inside that
 * class; an assignment to `other.name` counts everywhere.
 */
export function assignmentsOf(file: SourceFile, field: string): readonly string[] {
  const [owner, name] = field.split(".");
  const found: string[] = [];
  walk(file.program, (node, ancestors) => {
    if (node.type === "MethodDefinition" && node.kind === "constructor") return false;
    const target = node[ASSIGNED.get(node.type) ?? ""];
    if (!isNode(target) || target.type !== "MemberExpression" || nameOf(target.property) !== name) return undefined;
    const isOwn = isNode(target.object) && target.object.type === "ThisExpression";
    const within = ancestors.find(({ type }) => type === "ClassDeclaration");
    if (!isOwn || nameOf(within?.id) === owner) found.push(`${file.path}:${lineOf(file, node.start)}`);
    return undefined;
  });
  return found;
}
