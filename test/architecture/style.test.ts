import { describe, expect, it } from "vitest";
import { grouped } from "../../src/domain/grouped.ts";
import { isKept, type KeptName, oldNames } from "./rules/dialect.ts";
import { unsaid } from "./rules/headers.ts";
import { emptyNames, escapeHatches, sharedNames } from "./rules/names.ts";
import { functionsOf } from "./rules/sizes.ts";
import { countLines, median, parseSource, readCode } from "./tree.ts";

const source = readCode("src");
const functions = source.flatMap(functionsOf);

describe("source files", () => {
  it("have at most 400 lines", () => {
    const long = source.filter(({ text }) => countLines(text) > 400).map(({ path }) => path);
    expect(long).toEqual([]);
  });

  it("have a median of at most 120 lines", () => {
    expect(median(source.map(({ text }) => countLines(text)))).toBeLessThanOrEqual(120);
  });

  it("have specific names, without words such as utils or manager", () => {
    expect([...source, ...readCode("test"), ...readCode("scripts")].flatMap(emptyNames)).toEqual([]);
  });

  it("share no name with a file in a nearby folder", () => {
    expect(sharedNames(source.map(({ path }) => path))).toEqual([]);
  });

  it("bypass no compiler check", () => {
    expect(source.flatMap(escapeHatches)).toEqual([]);
  });

  it("of stages and detours state in their header what they read and write", () => {
    const stages = source.filter(({ path }) => /^src\/application\/(stages|detours)\//.test(path));
    expect(stages.length).toBeGreaterThan(10);
    expect(stages.flatMap(unsaid)).toEqual([]);
  });
});

/** Names that contain a replaced word and stay, because users see them. */
const KEPT: readonly KeptName[] = [
  {
    names: [
      ...["AcknowledgeOrder", "ApprovalOrder", "HoldOrder", "KillOrder", "LaneOrder", "PricedOrder", "RealignOrder"],
      ...["ReplaceOrder", "ResolveOrder", "ResubmitOrder"],
    ],
    within: /^src\/(contract|client|adapters\/cli)\//,
    because: "schemas of the OpenAPI document and types that the package exports",
  },
  {
    names: ["OrderOptions", "TypedReplaceOrder"],
    within: /^src\/(contract|client|adapters\/cli)\//,
    because: "types that the package exports, the second one as ReplaceOrder",
  },
  {
    names: ["told"],
    within:
      /^(src|test)\/(.*\/)?(api|cluster|kill|kill-switch|run-cli|faces|admin-port|admin-port-of-workers)(\.test)?\.ts$/,
    because: "member of the response to a kill: this node has confirmed it",
  },
  {
    names: ["told"],
    within: /^src\/adapters\/system\/log-sink\.ts$/,
    because: "state in the telemetry event instance.lock",
  },
];

describe("names in source and tests", () => {
  const old = [...source, ...readCode("test")].flatMap(oldNames);

  it("contain no banned word, except in names that users see", () => {
    expect(old.filter((name) => !KEPT.some((kept) => isKept(name, kept)))).toEqual([]);
  });

  it("are listed as exceptions only if they are in use", () => {
    const unused = KEPT.flatMap((kept) =>
      kept.names.filter((name) => !old.some((each) => each.name === name && isKept(each, kept))),
    );
    expect(unused).toEqual([]);
  });
});

describe("source folders", () => {
  const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));
  const loose = grouped(source, ({ path }) => folderOf(path));
  const hasFolders = (folder: string): boolean => [...loose.keys()].some((each) => each.startsWith(`${folder}/`));

  it("contain at most 15 files of their own if they have subfolders", () => {
    const crowded = [...loose].filter(([folder, files]) => hasFolders(folder) && files.length > 15);
    expect(crowded.map(([folder, files]) => `${folder}: ${files.length}`)).toEqual([]);
  });
});

describe("source functions", () => {
  it("have at most 70 lines", () => {
    expect(functions.filter(({ lines }) => lines > 70)).toEqual([]);
  });

  it("have a median of at most 10 lines, expression bodies excluded", () => {
    const bodies = functions.filter(({ hasBlock }) => hasBlock);
    expect(bodies.length).toBeGreaterThan(300);
    expect(median(bodies.map(({ lines }) => lines))).toBeLessThanOrEqual(10);
  });

  it("take at most four parameters", () => {
    expect(functions.filter(({ parameters }) => parameters > 4).map(({ where }) => where)).toEqual([]);
  });
});

describe("the check of code style", () => {
  const sizesOf = (text: string) => functionsOf(parseSource("src/a.ts", text));

  it("measures functions by their lines, including closures", () => {
    const [outer, inner] = sizesOf(`function outer() {\n  return () => {\n${"    work();\n".repeat(80)}  };\n}\n`);
    expect(outer).toMatchObject({ where: "src/a.ts:1 outer", lines: 84 });
    expect(inner).toMatchObject({ lines: 82, hasBlock: true });
  });

  it.each([
    ["function f(a, b, c, d) {}", 4],
    ["const f = (a, { b, c }, ...rest) => a;", 3],
    ["class A { constructor(a: number, b = 1, c?: string, d = c) {} }", 4],
    ["class A { m(this: A, a: number, b: number, c: number) {} }", 3],
    ["interface Port { commit(a: A, b: B, c: C, d: D): void }", 4],
    ["type F = (a: A, b: B, c: C, d: D) => void;", 4],
    ["app.addHook((request, reply, payload, done) => done());", 0],
  ])("counts the parameters of %s as %i", (text, count) => {
    expect(sizesOf(text)[0]?.parameters).toBe(count);
  });

  it.each([
    ["src/store-manager.ts", ""],
    ["src/utils/../lane.utils.ts", ""],
    ["src/a.ts", "export class LaneManager {}"],
    ["src/a.ts", "export const nonceHelper = 1;"],
    ["src/a.ts", "export interface CommonOptions {}"],
    ["src/a.ts", "const a = 1; export { a as dateUtil };"],
  ])("refuses the unspecific name in %s %s", (path, text) => {
    expect(emptyNames(parseSource(path, text))).toHaveLength(1);
  });

  it.each([
    ["const fateOf = 1;", "result or outcome"],
    ["interface MoveFates {}", "result or outcome"],
    ["function f({ told }) {}", "request, report, notify or send"],
    ["class StoryTeller {}", "request, report, notify or send"],
    ["class A { #untold = 1 }", "request, report, notify or send"],
    ["const HEARD_MS = 1;", "receive"],
    ["type Errand = 1;", "forwarded request or delivery"],
    ["const leftLying = 1;", "unowned or pending"],
    ["wire.mend();", "repair"],
    ["const stoodStill = 1;", "was or remained"],
    ["const whoeverAsks = 1;", "the name of the role"],
    ["interface Order {}", "action"],
    ["const orderKeyOf = 1;", "action"],
    ["let a: TransactionOrder;", "action"],
  ])("refuses the name in %s, and proposes: %s", (text, say) => {
    expect(oldNames(parseSource("src/a.ts", text))).toMatchObject([{ path: "src/a.ts", line: 1, say }]);
  });

  it.each(["src/order-key.ts", "test/left-lying.test.ts"])("refuses the file name %s", (path) => {
    expect(oldNames(parseSource(path, ""))).toHaveLength(1);
  });

  it("accepts similar words, other meanings of order, comments and strings", () => {
    const text = `// told, heard
      const recommended = understood + intelligence + lyingEndpoint, order = ["told"];
      client.list({ order: "oldest" }); sendInOrder(orderId); const ORDER = new OrderedMap();`;
    expect(oldNames(parseSource("src/ordered-map.ts", text))).toEqual([]);
  });

  it.each([
    ["src/lane/a.ts", "src/chain/a.ts"],
    ["src/lane/a.ts", "src/a.ts"],
    ["src/lane/a.ts", "src/lane/deep/down/a.ts"],
    ["src/lane/a.ts", "src/lane/a.js"],
  ])("refuses the same file name for %s and %s", (one, other) => {
    expect(sharedNames([one, other])).toHaveLength(1);
  });

  it("accepts equal names of distant files and of entry files", () => {
    expect(sharedNames(["src/domain/lane/a.ts", "src/ports/a.ts", "src/index.ts", "src/client/index.ts"])).toEqual([]);
  });

  it("matches whole words only", () => {
    expect(emptyNames(parseSource("src/uncommon.ts", "export const commonality = 1, utilisation = 2;"))).toEqual([]);
  });

  it.each([
    ["const a: any = 1;"],
    ["function f(rows: Map<string, any[]>) {}"],
    ["row!.id;"],
    ["class A { name!: string }"],
    ["// @ts-ignore\nf();"],
    ["// @ts-expect-error: known\nf();"],
  ])("finds the bypassed compiler check in %s", (text) => {
    expect(escapeHatches(parseSource("src/a.ts", text))).toHaveLength(1);
  });

  it("ignores names, comments and strings that only resemble a bypassed compiler check", () => {
    expect(escapeHatches(parseSource("src/a.ts", `const any = !a; // any\nconst s = "x!.y: any";`))).toEqual([]);
  });

  it.each([
    ["", 3],
    ["// Reads, writes, crash: a line comment is no header\n", 3],
    ["/** Reads: the chain. Writes: nothing. */", 1],
    ["import x from 'y';\n/** Reads: a. Writes: b. A crash leaves c. */", 3],
    ["/** Reads: a. Writes: b. A crash leaves c. */", 0],
  ])("reports what the stage header %j does not state", (text, count) => {
    expect(unsaid(parseSource("src/application/stages/1-create/a.ts", text))).toHaveLength(count);
  });
});
