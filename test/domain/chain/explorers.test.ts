import { expect, it } from "vitest";
import { explorerOf } from "../../../src/domain/chain/explorers.ts";

it.each([
  [1, null, "https://etherscan.io"],
  [31_337, null, null],
  [31_337, "http://localhost:4000/", "http://localhost:4000"],
  [1, "https://mine.example/eth", "https://mine.example/eth"],
])("the block explorer URL of chain %i with the setting %s is %s", (chainId, configured, found) => {
  expect(explorerOf(chainId, configured)).toBe(found);
});
