import { expect, it } from "vitest";
import { switchedSource } from "./switched-source.ts";

/** The source with these replacements behind switches 0, 1, …, without the import. */
function switched(source: string, ...replacements: readonly (readonly [find: string, replace: string])[]): string {
  const rows = replacements.map(([find, replace], id) => {
    return [id, { name: "", file: "src/domain/x.ts", find, replace, tests: [] }] as const;
  });
  const { code, left } = switchedSource(source, "src/domain/x.ts", new Map(rows));
  expect(left).toEqual([]);
  return code.slice(code.indexOf("\n") + 1);
}

it("compares the values of an expression without side effects", () => {
  expect(switched("const y = a < b && c;", ["a < b", "a <= b"])).toBe(
    "const y = either$(0, () => (a < b), () => (a <= b)) && c;",
  );
});

it("only chooses between expressions with side effects, or that wait", () => {
  expect(switched("list.push(x(1));", ["1", "2"])).toBe("list.push(x(either$(0, () => (1), () => (2))));");
  expect(switched("y = f(await g(1), 2);", ["await g(1)", "g(1)"])).toBe(
    "y = f((isOn$(0) ? (g(1)) : (await g(1))), 2);",
  );
});

it("does not tear a chain or a method call apart", () => {
  expect(switched("y = a?.b.c();", ["b.c", "b.d"])).toBe("y = either$(0, () => (a?.b.c()), () => (a?.b.d()));");
  expect(switched("const y = { a: b };", ["a:", "c:"])).toBe(
    "const y = either$(0, () => ({ a: b }), () => ({ c: b }));",
  );
});

it("lets a removed guard make a difference only if it holds", () => {
  expect(switched("function f() { if (a) return 1; b(); }", ["if (a) return 1;", ""], ["b();", ""])).toBe(
    "function f() { if ((a) && !isOn$(0)) return 1; if (!isOn$(1)) { b(); } }",
  );
});

it("replaces the block of statements that change otherwise", () => {
  expect(switched("function f() { const a = 1; return a; }", ["const a = 1; return a;", "return 1;"])).toBe(
    "function f() { if (isOn$(0)) { return 1; } else { const a = 1; return a; } }",
  );
});

it("puts one mutant into what another one leaves", () => {
  expect(switched("const y = a && b && c;", ["a && b", "b"], ["b && c", "c"])).toBe(
    "const y = either$(1, () => (either$(0, () => (a && b), () => (b)) && c), () => (a && c));",
  );
});
