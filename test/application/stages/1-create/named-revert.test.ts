import { encodeErrorResult, parseAbi } from "viem/utils";
import { afterEach, describe, expect, it } from "vitest";
import { TO, transfer, World, type WorldNode } from "../../../support/world.ts";

const LINES = ["function take(uint256 amount)", "error Short(uint256 has, uint256 needs)"];
const abi = parseAbi(["function take(uint256 amount)", "error Short(uint256 has, uint256 needs)"]);
const data = encodeErrorResult({ abi, errorName: "Short", args: [1n, 2n] });

let world: World;
afterEach(() => world.close());

const call = (given: object) => transfer({ payload: { to: TO, args: [5], gas: 100_000, ...given } });

const refused = (request: ReturnType<typeof transfer>) => {
  return world.refusal((world.nodes[0] as WorldNode).node.api.create(request));
};

describe("a call that would revert with a custom error", () => {
  it.each([
    ["beside the function", { abi: LINES, function: "take" }],
    ["as JSON", { abi, function: "take" }],
    ["in its place", { function: abi }],
  ])("is refused with the name of the error if the ABI is given: %s", async (_, given) => {
    world = new World();
    await world.startNode();
    world.chain.revertCallsTo(TO, data);
    const error = await refused(call(given));
    expect(error.message).toBe("the call would revert: Short(1, 2)");
    expect(error.extras).toMatchObject({
      reason: "REVERT",
      revert: { name: "Short", args: ["1", "2"], message: "Short(1, 2)", data },
    });
    expect(world.rows()).toEqual([]);
  });

  it("is refused with the raw revert data without a matching ABI", async () => {
    world = new World();
    await world.startNode();
    world.chain.revertCallsTo(TO, data);
    for (const given of [{ abi: LINES.slice(0, 1), function: "take" }, { function: "take(uint256)" }]) {
      const { revert } = (await refused(call(given))).extras;
      expect(revert).toEqual({ name: null, message: null, data });
    }
  });
});
