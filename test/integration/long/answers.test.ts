import { describe } from "vitest";
import { HEIGHTS, LIES, LOST_ANSWERS, RECEIPTS } from "../../support/troubles/answers.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("with faulty responses, no payload is lost or executed twice", () => {
  it.for(casesOf([...HEIGHTS, ...LIES, ...LOST_ANSWERS, ...RECEIPTS]))(
    "if %s",
    async ([, trouble, policy], { stage }) => {
      await endure(await stage(trouble.setting, policy), trouble);
    },
  );
});
