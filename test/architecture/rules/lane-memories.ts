import { isNode, lineOf, type Node, nameOf, nodesIn, type SourceFile, walk } from "../tree.ts";

/** Types that name a lane, a signer or a transaction. */
const KEYS = new Set(["LaneKey", "Lane", "OwnedLane", "Tracked", "Fence", "Address", "Hash"]);
const COLLECTIONS = new Set(["Map", "Set", "WeakMap", "WeakSet"]);
const READONLY = new Set(["ReadonlyMap", "ReadonlySet"]);
const FUNCTIONS = new Set(["ArrowFunctionExpression", "FunctionExpression", "FunctionDeclaration"]);
/** Folders in which a `string` key may be a transaction id. In adapters a `string` key means something else. */
const KNOWS_IDS = /^src\/(domain|application)\//;

/** A collection that outlives the call that created it. */
export interface Memory {
  readonly path: string;
  /** Name of the collection: `Class.field`, or the name of the variable. */
  readonly name: string;
  /** The key type of the collection. */
  readonly key: string;
  readonly line: number;
}

/**
 * Every class field, module variable and captured variable that is a collection keyed by lane, signer or transaction.
 */
export function laneMemories(files: readonly SourceFile[]): readonly Memory[] {
  const kinds = new Set([...COLLECTIONS, ...files.flatMap(genericCollections)]);
  return files.flatMap((file) => {
    const found: Memory[] = [];
    walk(file.program, (node, ancestors) => {
      if (node.type !== "PropertyDefinition" && node.type !== "VariableDeclarator") return undefined;
      const key = keyOf(node, kinds, KNOWS_IDS.test(file.path));
      const name = key === null ? null : heldAs(node, ancestors);
      if (name !== null && key !== null) found.push({ path: file.path, name, key, line: lineOf(file, node.start) });
      return undefined;
    });
    return found;
  });
}

/**
 * Generic classes with a collection keyed by one of their type parameters, such as `Answers<K, T>` with a field `Map<K,
 * …>`.
 */
function genericCollections({ program }: SourceFile): readonly string[] {
  const found: string[] = [];
  walk(program, (node) => {
    if (node.type !== "ClassDeclaration" || !isNode(node.typeParameters)) return undefined;
    const own = nodesIn(node.typeParameters.params).map((each) => nameOf(each.name));
    walk(node, (each) => {
      const [first] = argumentsOf(each);
      if (COLLECTIONS.has(kindOf(each)) && own.includes(typeName(first))) found.push(nameOf(node.id) ?? "");
      return undefined;
    });
    return false;
  });
  return found;
}

/** Name of a declared variable or field that outlives the call that created it; null if it ends with that call. */
function heldAs(node: Node, ancestors: readonly Node[]): string | null {
  const name = nameOf(node.key ?? node.id);
  if (node.type === "PropertyDefinition") {
    return `${nameOf(ancestors.find(({ type }) => type.startsWith("Class") && type !== "ClassBody")?.id)}.${name}`;
  }
  if (node.type !== "VariableDeclarator" || name === null) return null;
  const around = ancestors.find(({ type }) => FUNCTIONS.has(type));
  return around === undefined || isCaptured(around, name) ? name : null;
}

/**
 * True if a variable outlives its function: an inner function uses it, and the outer function returns a function or an
 * object of functions.
 */
function isCaptured(around: Node, name: string): boolean {
  let [captured, returned] = [false, isKept(around.body)];
  walk(around, (node, ancestors) => {
    const inner = ancestors.slice(0, ancestors.indexOf(around)).some(({ type }) => FUNCTIONS.has(type));
    captured ||= inner && nameOf(node) === name;
    returned ||= !inner && node.type === "ReturnStatement" && isKept(node.argument);
    return undefined;
  });
  return captured && returned;
}

function isKept(value: unknown): boolean {
  return isNode(value) && (FUNCTIONS.has(value.type) || value.type === "ObjectExpression");
}

/**
 * Key type of a declared collection. Null if the declaration is no collection, if it never changes, or if its key is
 * not a lane, signer or transaction.
 */
function keyOf(declaration: Node, kinds: ReadonlySet<string>, knowsIds: boolean): string | null {
  const { id } = declaration;
  const annotation = isNode(id) && id.type === "Identifier" ? id.typeAnnotation : declaration.typeAnnotation;
  const isFixed = declaration.type === "VariableDeclarator" || declaration.readonly === true;
  const keys: string[] = [];
  for (const part of [annotation, declaration.value ?? declaration.init].filter(isNode)) {
    walk(part, (node, ancestors) => {
      if (FUNCTIONS.has(node.type) || node.type === "TSFunctionType" || node.type === "ClassExpression") return false;
      const key = typeName(argumentsOf(node)[0]);
      const collects = kinds.has(kindOf(node)) || (READONLY.has(kindOf(node)) && !isFixed);
      if (collects && key !== null && (KEYS.has(key) || (knowsIds && key === "string"))) keys.push(key);
      const element = node.type === "TSArrayType" ? typeName(node.elementType) : null;
      const isReadonly = ancestors[0]?.type === "TSTypeOperator";
      if (element !== null && KEYS.has(element) && !(isFixed && isReadonly)) keys.push(element);
      const isBare = node.type === "NewExpression" && COLLECTIONS.has(kindOf(node)) && argumentsOf(node).length === 0;
      if (isBare && knowsIds && isEmpty(node) && isHidden(annotation)) keys.push("not declared");
      return undefined;
    });
  }
  return keys[0] ?? null;
}

/**
 * True if the declaration does not show its type: it has no annotation, or the annotation is a property of another type
 * (`Other["field"]`).
 */
function isHidden(annotation: unknown): boolean {
  if (!isNode(annotation)) return true;
  return isNode(annotation.typeAnnotation) && annotation.typeAnnotation.type === "TSIndexedAccessType";
}

function isEmpty(node: Node): boolean {
  return nodesIn(node.arguments).length === 0;
}

function kindOf(node: Node): string {
  if (node.type === "NewExpression") return nameOf(node.callee) ?? "";
  return node.type === "TSTypeReference" ? (nameOf(node.typeName) ?? "") : "";
}

function argumentsOf(node: Node): readonly Node[] {
  return isNode(node.typeArguments) ? nodesIn(node.typeArguments.params) : [];
}

function typeName(type: unknown): string | null {
  if (!isNode(type)) return null;
  return type.type === "TSStringKeyword" ? "string" : nameOf(type.typeName);
}
