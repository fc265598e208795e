import { describe } from "vitest";
import { ATTEMPTS, REORGS } from "../../support/troubles/reorgs.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("with reorgs or competing attempts, no payload is lost or executed twice", () => {
  it.for(casesOf([...ATTEMPTS, ...REORGS]))("if %s", async ([, trouble, policy], { stage }) => {
    await endure(await stage(trouble.setting, policy), trouble);
  });
});
