import { describe } from "vitest";
import { FOREIGN, HOLES, RESETS } from "../../support/troubles/nonces.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("nonces that others use or nothing holds, and chains that are not ours: each payload is executed once or reported as never", () => {
  it.for(casesOf([...FOREIGN, ...HOLES, ...RESETS]))("%s", async ([, trouble, policy], { stage }) => {
    await endure(await stage(trouble.setting, policy), trouble);
  });
});
