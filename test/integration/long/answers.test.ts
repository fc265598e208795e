import { describe } from "vitest";
import { HEIGHTS, LIES, LOST_ANSWERS, RECEIPTS } from "../../support/troubles/answers.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("each payload is executed once, or reported as never executed, if responses are lost, late or false:", () => {
  it.for(casesOf([...HEIGHTS, ...LIES, ...LOST_ANSWERS, ...RECEIPTS]))(
    "in the case that %s",
    async ([, trouble, policy], { stage }) => {
      await endure(await stage(trouble.setting, policy), trouble);
    },
  );
});
