import { describe } from "vitest";
import { HEIGHTS, LIES, LOST_ANSWERS, RECEIPTS } from "../../support/troubles/answers.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("answers that are lost, late or untrue: each payload is executed once or reported as never", () => {
  it.for(casesOf([...HEIGHTS, ...LIES, ...LOST_ANSWERS, ...RECEIPTS]))("%s", async ([, trouble, policy], { stage }) => {
    await endure(await stage(trouble.setting, policy), trouble);
  });
});
