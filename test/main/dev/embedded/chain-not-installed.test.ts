import { expect, test, vi } from "vitest";
import { startEmbeddedChain } from "../../../../src/main/dev/embedded/start-chain.ts";

vi.mock("@nomicfoundation/edr", () => {
  throw new Error("Cannot find package '@nomicfoundation/edr'");
});

test("the embedded chain without its optional package reports in one line what to install", async () => {
  await expect(startEmbeddedChain()).rejects.toMatchObject({
    code: "NOT_INSTALLED",
    message: expect.stringMatching(
      /^the embedded chain needs @nomicfoundation\/edr: run "npm install --save-dev @nomicfoundation\/edr@\S+", or set FENCEPOST_RPC_URL to a chain of your own$/,
    ),
  });
});
