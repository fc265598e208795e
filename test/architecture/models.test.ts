import { describe, expect, it } from "vitest";
import { judge, switchesOf } from "../../scripts/model.mjs";
import { listFiles, readText } from "./tree.ts";

const models = listFiles("spec").filter((path) => path.endsWith(".pml"));

describe("the models in spec/", () => {
  it("name each of their protections once, and can switch it off", () => {
    expect(models.length).toBeGreaterThanOrEqual(4);
    for (const path of models) {
      const text = readText(path);
      const names = switchesOf(text).map(({ name }) => name);
      expect(names.length, path).toBeGreaterThanOrEqual(4);
      const used = [...text.matchAll(/^#if(?:n?)def WITHOUT_([A-Z_]+)$/gm)].map(([, name]) => name);
      expect([...new Set(used)].sort(), path).toEqual([...names].sort());
    }
  });

  it("hold only if the search was exhaustive and found no error", () => {
    const output = (errors: number, line = "") =>
      `${line}\nState-vector 44 byte, depth reached 92, errors: ${errors}\n     1902 states, stored\n`;
    expect(judge(output(0))).toEqual({ verdict: "held", states: 1902, violated: null });
    expect(judge(output(0, "error: max search depth too small")).verdict).toBe("incomplete");
    expect(judge(output(1, "pan:1: assertion violated (rows<=1) (at depth 21)"))).toMatchObject({
      verdict: "violated",
      violated: "assertion violated (rows<=1)",
    });
    expect(judge("killed").verdict).toBe("incomplete");
  });
});
