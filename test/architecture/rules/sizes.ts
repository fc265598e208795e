import { countLines, isNode, lineOf, type Node, nameOf, nodesIn, type SourceFile, walk } from "../tree.ts";

export interface FunctionSize {
  /** Location and name of a function: `src/x.ts:12 createNode`. */
  readonly where: string;
  readonly lines: number;
  readonly parameters: number;
  /** True if the function's body is a block of statements, not a single expression such as `(row) => row.id`. */
  readonly hasBlock: boolean;
}

const FUNCTIONS = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);
/** Signatures in a port count like the functions that implement them. */
const SIGNATURES = new Set(["TSMethodSignature", "TSFunctionType", "TSDeclareFunction"]);

/** Every function of a file, including nested ones. The lines of nested functions count for the outer function too. */
export function functionsOf(file: SourceFile): readonly FunctionSize[] {
  const found: FunctionSize[] = [];
  walk(file.program, (node, [parent]) => {
    if (!FUNCTIONS.has(node.type) && !SIGNATURES.has(node.type)) return undefined;
    found.push({
      where: `${file.path}:${lineOf(file, node.start)} ${nameOf(node.id ?? node.key ?? parent?.key ?? parent?.id) ?? "anonymous"}`,
      lines: countLines(file.text.slice(node.start, node.end)),
      // A callback's parameters are not counted: the function that receives the callback determines them.
      parameters: isCallback(node, parent) ? 0 : parametersOf(node).length,
      hasBlock: isNode(node.body) && node.body.type === "BlockStatement",
    });
    return undefined;
  });
  return found;
}

function isCallback(node: Node, parent: Node | undefined): boolean {
  return parent?.type === "CallExpression" && parent.callee !== node;
}

/** A parameter named `this` is only a type annotation, so it is not counted. */
function parametersOf({ params }: Node): readonly Node[] {
  return nodesIn(params).filter((parameter) => nameOf(parameter) !== "this");
}
