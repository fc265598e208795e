import { describe } from "vitest";
import { FUNDS, MARKET, POOL, REFUSALS } from "../../support/troubles/pool.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("pools, prices and money: each payload is executed once or reported as never", () => {
  it.for(casesOf([...FUNDS, ...MARKET, ...POOL, ...REFUSALS]))("%s", async ([, trouble, policy], { stage }) => {
    await endure(await stage(trouble.setting, policy), trouble);
  });
});
