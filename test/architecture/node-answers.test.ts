import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { SUBMISSION_WORDINGS } from "../../src/adapters/evm/submit/submission-wordings.ts";
import { SUBMIT_ANSWERS } from "../../src/domain/chain/answers.ts";

const page = readFileSync(new URL("../../docs/node-answers.md", import.meta.url), "utf8");

it("every answer of a node has its row, and says what happens next", () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \| [^|]+ \| [^|]+ \|$/gm)].map(([, answer]) => answer);
  expect(rows.toSorted()).toEqual([...SUBMIT_ANSWERS].toSorted());
});

it("every wording that is recognised is listed with its answer and who says it, and no other", () => {
  const listed = [...page.matchAll(/^\| ([^`|]+) \| `(\w+)` \| ([^|]+) \|$/gm)].map(([, ...cells]) =>
    cells.join(" | "),
  );
  const known = SUBMISSION_WORDINGS.map(({ says, answer, by }) => [says, answer, by.join(", ")].join(" | "));
  expect(listed.toSorted()).toEqual(known.toSorted());
});
