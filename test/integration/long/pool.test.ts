import { describe } from "vitest";
import { FUNDS, MARKET, POOL, REFUSALS } from "../../support/troubles/pool.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("with mempool or fee problems, no payload is lost or executed twice", () => {
  it.for(casesOf([...FUNDS, ...MARKET, ...POOL, ...REFUSALS]))("if %s", async ([, trouble, policy], { stage }) => {
    await endure(await stage(trouble.setting, policy), trouble);
  });
});
