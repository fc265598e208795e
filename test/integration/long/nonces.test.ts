import { describe } from "vitest";
import { FOREIGN, HOLES, RESETS } from "../../support/troubles/nonces.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("each payload is executed once, or reported as never executed, despite foreign nonces, holes and other chains:", () => {
  it.for(casesOf([...FOREIGN, ...HOLES, ...RESETS]))("in the case that %s", async ([, trouble, policy], { stage }) => {
    await endure(await stage(trouble.setting, policy), trouble);
  });
});
