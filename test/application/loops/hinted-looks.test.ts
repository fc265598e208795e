import { afterEach, describe, expect, it } from "vitest";
import { ChainContext } from "../../../src/application/chain/chain-context.ts";
import type { WorkPorts } from "../../../src/application/chain/work-ports.ts";
import { ChainLoop } from "../../../src/application/loops/chain-loop.ts";
import type { Chain } from "../../../src/ports/chain.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { createChainBench } from "../../support/chain-bench.ts";
import { CHAIN_SETTINGS } from "../../support/world.ts";

const POLL_MS = 16_000;

let loop: ChainLoop | null = null;
afterEach(() => loop?.stop());

/** Makes a chain loop without lanes, which has read the chain's newest block once. */
async function following() {
  const { chain, simulated, telemetry } = createChainBench();
  const clock = createManualClock();
  let looks = 0;
  let hint: () => void = () => undefined;
  const hinting = Object.create(chain, {
    onNewHead: {
      value: (listener: () => void) => {
        hint = listener;
      },
    },
    head: {
      value: (tag: "latest") => {
        looks++;
        return chain.head(tag);
      },
    },
  }) as Chain;
  const context = new ChainContext(hinting, { ...CHAIN_SETTINGS, pollIntervalMs: POLL_MS }, { clock, telemetry });
  const ports = { clock, telemetry, lanesOf: () => [] } as Partial<WorkPorts> as WorkPorts;
  loop = new ChainLoop(ports, context);
  loop.start();
  await clock.advance(1);
  return { clock, simulated, context, hint: () => hint(), looks: () => looks };
}

describe("a hint about a new block", () => {
  it("makes the node read the newest block at once", async () => {
    const { clock, simulated, context, hint, looks } = await following();
    simulated.mine(1);
    await clock.advance(3_000);
    expect(looks()).toBe(1);
    hint();
    await clock.advance(1);
    expect(looks()).toBe(2);
    expect(context.follower.head?.hash).toBe(simulated.head.hash);
    await clock.advance(POLL_MS - 3_000);
    expect(looks()).toBe(3);
  });

  it("causes only a few reads per interval if the hint is repeated endlessly", async () => {
    const { clock, hint, looks } = await following();
    for (let ms = 0; ms < POLL_MS - 100; ms += 10) {
      hint();
      await clock.advance(10);
    }
    expect(looks()).toBeGreaterThan(5);
    expect(looks()).toBeLessThanOrEqual(18);
  });
});
