import { describe, expect, it } from "vitest";
import { actOnLane } from "../../../src/application/operations/lane-actions.ts";
import { createStageBench } from "../../support/stage-bench.ts";

describe("a lane that is being suspended", () => {
  it.each([
    ["suspend", true],
    ["resume", false],
  ] as const)("is held from the beginning of its write: %s", async (action, isHeld) => {
    const bench = createStageBench({ cursor: 5 });
    const { lane, ports, control } = bench;
    const held: boolean[] = [];
    control.meanwhile = () => void held.push(lane.held);
    const asked = { lane: lane.lane, action, actor: "operator:ops", reason: "because", nonce: null };
    await actOnLane.perform(ports as unknown as Parameters<typeof actOnLane.perform>[0], lane, asked);
    expect(held).toEqual([isHeld]);
  });
});
