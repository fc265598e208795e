import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { withAnswerWords } from "../../scripts/answer-words.mjs";
import { SUBMISSION_WORDINGS } from "../../src/adapters/evm/submit/submission-wordings.ts";
import { SUBMIT_ANSWERS } from "../../src/domain/chain/answers.ts";

const page = readFileSync(new URL("../../docs/node-answers.md", import.meta.url), "utf8");

it("the page on endpoint responses has one row for every submit result, with what happens next", () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \| [^|]+ \| [^|]+ \|$/gm)].map(([, answer]) => answer);
  expect(rows.toSorted()).toEqual([...SUBMIT_ANSWERS].toSorted());
});

it("the page on endpoint responses lists the words that the code recognises; if not, run npm run docs:answers", () => {
  expect(page).toContain("| already known | `alreadyKnown` | geth");
  expect(page === withAnswerWords(page, SUBMISSION_WORDINGS)).toBe(true);
});
