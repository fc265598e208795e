/**
 * What an editor shows on hover, read by the compiler's own API from the declarations that the package ships: every
 * exported function has a sentence and an example, every option, request and payload field has a sentence.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { API, type Symbol as NamedSymbol, type Type } from "typescript/unstable/sync";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { ROOT } from "../architecture/tree.ts";

const DIST = join(ROOT, "dist/");
/** Entries of the package with their declarations. */
const ENTRIES = Object.entries(manifest.exports).flatMap(([entry, files]) =>
  typeof files === "string" ? [] : [[entry, join(ROOT, files.types)] as const],
);
/** TypeScript's kinds of signatures and flags of symbols, which the API's types name but do not export as values. */
const CALL = 0;
const [FUNCTION, CLASS] = [16, 32];

const place = mkdtempSync(join(ROOT, "node_modules/.hovers-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

const undocumented: string[] = [];
const withoutExample: string[] = [];
let fields = 0;

/** Walks everything that a caller writes: parameters of functions and methods, and their members. */
function walkEntries(): void {
  const file = join(place, "entries.ts");
  writeFileSync(file, ENTRIES.map(([, path], at) => `export * as entry${at} from ${JSON.stringify(path)};`).join("\n"));
  const compilerOptions = { noEmit: true, types: ["node"], declaration: false };
  const config = { extends: join(ROOT, "tsconfig.json"), compilerOptions, include: [], files: ["entries.ts"] };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify(config));
  const api = new API({ cwd: place });
  const project = api
    .updateSnapshot({ openProjects: [join(place, "tsconfig.json")] })
    .getProject(join(place, "tsconfig.json"));
  const checker = project?.checker;
  const source = project?.program.getSourceFile(file);
  if (checker === undefined || source === undefined) throw new Error("the entries cannot be read");
  const seen = new Set<number>();
  // Shapes of other libraries' transactions are recognised, not written by the caller.
  const isOurs = ({ declarations }: NamedSymbol) =>
    declarations.some(({ path }) => path.startsWith(DIST) && !path.endsWith("/caller-transaction.d.ts"));

  const visit = (type: Type | undefined, path: string): void => {
    if (type === undefined || seen.has(type.id)) return;
    seen.add(type.id);
    if (type.isUnionType()) {
      for (const each of type.getTypes()) visit(each, path);
      return;
    }
    if (checker.isArrayType(type) || checker.isTupleType(type)) {
      for (const each of checker.getTypeArguments(type as never)) visit(each, `${path}[]`);
      return;
    }
    for (const member of checker.getPropertiesOfType(type)) {
      if (isOurs(member) && !member.name.startsWith("__")) visitMember(member, `${path}.${member.name}`);
    }
  };
  const visitMember = (member: NamedSymbol, path: string) => {
    fields++;
    if (checker.getDocumentationCommentOfSymbol(member).trim() === "") undocumented.push(path);
    const type = checker.getTypeOfSymbol(member);
    // Parameters of a method are written by the caller; parameters of a callback are not.
    if (type !== undefined && isMethodOfCaller(path)) visitCalls(type, path);
    visit(type, path);
  };
  const isMethodOfCaller = (path: string) => /^\S+ \w+\.\w+$/.test(path);
  const visitCalls = (type: Type, path: string) => {
    for (const call of checker.getSignaturesOfType(type, CALL)) {
      for (const parameter of call.getParameters())
        visit(checker.getTypeOfSymbol(parameter), `${path}(${parameter.name})`);
    }
  };

  const module = checker.getSymbolAtLocation(source);
  for (const [at, [entry]] of ENTRIES.entries()) {
    const namespace = module?.getExports().get(`entry${at}` as never);
    if (namespace === undefined) throw new Error(`${entry} has no exports`);
    for (const exported of checker.getExportsOfModule(checker.getAliasedSymbol(namespace))) {
      const symbol = exported.flags & 2097152 ? checker.getAliasedSymbol(exported) : exported;
      const path = `${entry}: ${exported.name}`;
      if (!isOurs(symbol)) continue;
      if (symbol.flags & (FUNCTION | CLASS) && checker.getDocumentationCommentOfSymbol(symbol).trim() === "")
        undocumented.push(path);
      if (symbol.flags & FUNCTION) {
        if (!checker.getJsDocTagsOfSymbol(symbol).some(({ name }) => name === "example")) withoutExample.push(path);
        const type = checker.getTypeOfSymbol(symbol);
        if (type !== undefined) visitCalls(type, path);
      } else if (/^(Fencepost|FencepostClient|FencepostFace|SentTransaction|Stack)$/.test(exported.name)) {
        visit(checker.getDeclaredTypeOfSymbol(symbol), path);
      }
    }
  }
  api.close();
}

describe("the declarations of the package", () => {
  beforeAll(walkEntries, 120_000);

  it("have an example for every exported function", () => {
    expect(withoutExample).toEqual([]);
  });

  it("have a sentence for every function, option, request and payload field", () => {
    expect(fields).toBeGreaterThan(300);
    expect(undocumented).toEqual([]);
  });
});
