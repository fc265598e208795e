import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { SUBMISSION_WORDINGS } from "../../src/adapters/evm/submit/submission-wordings.ts";
import { SUBMIT_ANSWERS } from "../../src/domain/chain/answers.ts";

const page = readFileSync(new URL("../../docs/node-answers.md", import.meta.url), "utf8");

it("the page on endpoint responses has one row for every submit result, with what happens next", () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \| [^|]+ \| [^|]+ \|$/gm)].map(([, answer]) => answer);
  expect(rows.toSorted()).toEqual([...SUBMIT_ANSWERS].toSorted());
});

it("the page on endpoint responses lists exactly the error messages that the code recognises", () => {
  const listed = [...page.matchAll(/^\| ([^`|]+) \| `(\w+)` \| ([^|]+) \|$/gm)].map(([, ...cells]) =>
    cells.join(" | "),
  );
  const known = SUBMISSION_WORDINGS.map(({ says, answer, by }) => [says, answer, by.join(", ")].join(" | "));
  expect(listed.toSorted()).toEqual(known.toSorted());
});
