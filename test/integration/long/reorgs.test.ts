import { describe } from "vitest";
import { ATTEMPTS, REORGS } from "../../support/troubles/reorgs.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("attempts that compete, and blocks that do not stay: each payload is executed once or reported as never", () => {
  it.for(casesOf([...ATTEMPTS, ...REORGS]))("%s", async ([, trouble, policy], { stage }) => {
    await endure(await stage(trouble.setting, policy), trouble);
  });
});
