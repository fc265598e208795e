// `npm run docs:answers` writes the words of chain nodes in docs/node-answers.md from the table that the code uses. A test
// compares the two.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { withWritten } from "./written-block.mjs";

const PAGE = join(dirname(dirname(fileURLToPath(import.meta.url))), "docs/node-answers.md");

/**
 * The page with the table of these words.
 *
 * @param {string} page
 * @param {readonly { readonly says: string, readonly answer: string, readonly by: readonly string[] }[]} wordings
 * @returns {string}
 */
export function withAnswerWords(page, wordings) {
  const rows = wordings.map(({ says, answer, by }) => `| ${says} | \`${answer}\` | ${by.join(", ")} |\n`);
  const table = `\n| words | answer | said by |\n| --- | --- | --- |\n${rows.join("")}\n`;
  return withWritten(page, table, "docs:answers");
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const { createJiti } = await import("jiti");
  const source = "../src/adapters/evm/submit/submission-wordings.ts";
  const { SUBMISSION_WORDINGS } = await createJiti(import.meta.url).import(source);
  writeFileSync(PAGE, withAnswerWords(readFileSync(PAGE, "utf8"), SUBMISSION_WORDINGS));
}
