import { describe } from "vitest";
import { FUNDS, MARKET, POOL, REFUSALS } from "../../support/troubles/pool.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure } from "../../support/troubles/trouble.ts";

describe("each payload is executed once, or reported as never executed, despite trouble with mempool, prices and funds:", () => {
  it.for(casesOf([...FUNDS, ...MARKET, ...POOL, ...REFUSALS]))(
    "in the case that %s",
    async ([, trouble, policy], { stage }) => {
      await endure(await stage(trouble.setting, policy), trouble);
    },
  );
});
