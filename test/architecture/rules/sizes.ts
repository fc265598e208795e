import { countLines, isNode, lineOf, type Node, nameOf, nodesIn, type SourceFile, walk } from "../tree.ts";

export interface FunctionSize {
  /** Place and name: `src/x.ts:12 createNode`. */
  readonly where: string;
  readonly lines: number;
  readonly parameters: number;
  /** A body of statements. Without one it is an expression waiting for its input: `(row) => row.id`. */
  readonly hasBlock: boolean;
}

const FUNCTIONS = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);
/** Promises of a port count as the functions that keep them. */
const SIGNATURES = new Set(["TSMethodSignature", "TSFunctionType", "TSDeclareFunction"]);

/** Every function of a file, those inside others too: what is long because of its closures is long. */
export function functionsOf(file: SourceFile): readonly FunctionSize[] {
  const found: FunctionSize[] = [];
  walk(file.program, (node, [parent]) => {
    if (!FUNCTIONS.has(node.type) && !SIGNATURES.has(node.type)) return undefined;
    found.push({
      where: `${file.path}:${lineOf(file, node.start)} ${nameOf(node.id ?? node.key ?? parent?.key ?? parent?.id) ?? "anonymous"}`,
      lines: countLines(file.text.slice(node.start, node.end)),
      // A callback's parameters are chosen by the function that it is given to.
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

/** `this` is a type annotation written as a parameter. */
function parametersOf({ params }: Node): readonly Node[] {
  return nodesIn(params).filter((parameter) => nameOf(parameter) !== "this");
}
