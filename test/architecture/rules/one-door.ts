import { isNode, lineOf, type Node, nameOf, type SourceFile, walk } from "../tree.ts";

/** Files that may call the methods that check whether a lane, or the node itself, may still act. */
const ASKERS: Readonly<Record<string, readonly string[]>> = {
  hasEnded: ["lane/term.ts", "lane/owned-lane.ts", "lane/lanes.ts"],
  maySend: ["lane/term.ts", "lane/owned-lane.ts", "lane/lease.ts"],
  // The last four files check for the node as a whole, not for a lane: whether it accepts requests, is ready, may claim
  // lanes, or may deliver webhooks.
  mayAct: [
    "lane/term.ts",
    "lane/owned-lane.ts",
    "lane/lease.ts",
    "lane/lanes.ts",
    "loops/deliveries.ts",
    "loops/node.ts",
    "loops/reception.ts",
    "queries/readiness.ts",
  ],
};

/**
 * Methods that change something outside (write, send, sign), by name. `on` is the name of the object on which they are
 * called; null matches any object.
 */
const EFFECTS: Readonly<Record<string, { readonly on: string | null; readonly door: string }>> = {
  write: { on: "writer", door: "write" },
  submit: { on: null, door: "send" },
  sendUnsigned: { on: null, door: "send" },
  sign: { on: "signer", door: "sign" },
};

/**
 * Files that may call the methods in EFFECTS: term.ts, and the layer between it and the signer, which only passes
 * requests on.
 */
const DOORS = ["lane/term.ts", "cluster/keys-away.ts"];

/** Finds code that checks or acts for a lane without going through its term (application/lane/term.ts). */
export function besideTheDoor(file: SourceFile): readonly string[] {
  const place = file.path.replace("src/application/", "");
  const found: string[] = [];
  walk(file.program, (node, ancestors) => {
    const what = question(node, place) ?? (DOORS.includes(place) ? null : effect(node, ancestors));
    if (what !== null) found.push(`${file.path}:${lineOf(file, node.start)}: ${what}`);
    return undefined;
  });
  return found;
}

function question(node: Node, place: string): string | null {
  if (node.type !== "MemberExpression") return null;
  const name = nameOf(node.property) ?? "";
  if (!Object.hasOwn(ASKERS, name) || ASKERS[name]?.includes(place)) return null;
  return `asks ${name}`;
}

function effect(node: Node, ancestors: readonly Node[]): string | null {
  const called = calledBy(node);
  if (called === null || !Object.hasOwn(EFFECTS, called.name)) return null;
  const { on, door } = EFFECTS[called.name] as (typeof EFFECTS)[string];
  if (on !== null && called.on !== on) return null;
  const isInside = ancestors.some((around) => {
    const outer = calledBy(around);
    return outer?.on === "term" && outer.name === door;
  });
  return isInside ? null : `${called.on ?? "?"}.${called.name} beside term.${door}`;
}

function calledBy(node: Node): { readonly on: string | null; readonly name: string } | null {
  const { callee } = node;
  if (node.type !== "CallExpression" || !isNode(callee) || callee.type !== "MemberExpression") return null;
  const { object } = callee;
  const on = isNode(object) && object.type === "MemberExpression" ? nameOf(object.property) : nameOf(object);
  return { on, name: nameOf(callee.property) ?? "" };
}
