/** Runs a selection of the chain faults; `npm run test:chain` runs all of them. */
import { describe } from "vitest";
import { HEIGHTS, LIES, LOST_ANSWERS, RECEIPTS } from "../../support/troubles/answers.ts";
import { FOREIGN, HOLES } from "../../support/troubles/nonces.ts";
import { MARKET } from "../../support/troubles/pool.ts";
import { ATTEMPTS, REORGS } from "../../support/troubles/reorgs.ts";
import { it } from "../../support/troubles/scene.ts";
import { casesOf, endure, named } from "../../support/troubles/trouble.ts";

const EVERY = [LOST_ANSWERS, LIES, HEIGHTS, RECEIPTS, MARKET, FOREIGN, HOLES, ATTEMPTS, REORGS].flat();

const FEW = named(EVERY, [
  ["replies to sends are swallowed", "move"],
  ["receipts cannot be had while the nonce goes on", "heal"],
  ["the base fee rises over what was offered", "move"],
  ["a foreign transaction replaces ours in the pool", "heal"],
  ["a count is too high for as long as it is looked at, and we send above it", "heal"],
  ["one of two endpoints counts forty too many for good, and the other is always a block late", "move"],
  ["one of three endpoints counts forty too many for good: the two others, a block late, outvote it", "move"],
  ["a reserved nonce is left to expire", "move"],
  ["a reorg of depth 4 mines another attempt", "move"],
]);

describe("on a complete node, no payload is lost or executed twice", () => {
  it.for(casesOf(FEW))("if %s", async ([, trouble, policy], { stage }) => {
    await endure(await stage(trouble.setting, policy), trouble);
  });
});
