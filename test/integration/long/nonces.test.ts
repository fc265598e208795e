import { describe } from "vitest";
import { FOREIGN, HOLES, RESETS } from "../../support/troubles/nonces.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("with nonce conflicts, no payload is lost or executed twice", () => {
  it.for(casesOf([...FOREIGN, ...HOLES, ...RESETS]))("if %s", async ([, trouble, policy], { stage }) => {
    await endure(await stage(trouble.setting, policy), trouble);
  });
});
