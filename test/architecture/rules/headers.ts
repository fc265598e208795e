import type { SourceFile } from "../tree.ts";

const PARTS = {
  "what it reads": /\breads?\b/i,
  "what it writes": /\bwrites?\b/i,
  "what a crash leaves": /\bcrash\b/i,
};

/** The parts that are missing in a stage file's header. The header must be the first thing in the file. */
export function unsaid({ path, text }: SourceFile): readonly string[] {
  const header = /^\/\*\*[\s\S]*?\*\//.exec(text)?.[0] ?? "";
  return Object.entries(PARTS)
    .filter(([, words]) => !words.test(header))
    .map(([part]) => `${path}: ${part}`);
}
