import type { SourceFile } from "../tree.ts";

const PARTS = {
  "what it reads": /\breads?\b/i,
  "what it writes": /\bwrites?\b/i,
  "what a crash leaves": /\bcrash\b/i,
};

/** The parts that are missing in a stage's header. A header comes before everything else. */
export function unsaid({ path, text }: SourceFile): readonly string[] {
  const header = /^\/\*\*[\s\S]*?\*\//.exec(text)?.[0] ?? "";
  return Object.entries(PARTS)
    .filter(([, words]) => !words.test(header))
    .map(([part]) => `${path}: ${part}`);
}
