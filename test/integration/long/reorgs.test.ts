import { describe } from "vitest";
import { ATTEMPTS, REORGS } from "../../support/troubles/reorgs.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("each payload is executed once, or reported as never executed, despite competing attempts and reorgs:", () => {
  it.for(casesOf([...ATTEMPTS, ...REORGS]))("in the case that %s", async ([, trouble, policy], { stage }) => {
    await endure(await stage(trouble.setting, policy), trouble);
  });
});
