import { createUuidSequence } from "../../src/adapters/system/entropy.ts";
import { sfc32 } from "../../src/main/dev/chaos/dice.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Entropy } from "../../src/ports/entropy.ts";

/** The same seed (and the same clock readings) give the same ids and the same jitter, in the same order. */
export function createSeededEntropy(seed: number, clock?: Pick<Clock, "now">): Entropy {
  const ids = sfc32(seed);
  const jitter = sfc32(~seed);
  const nowMs = clock === undefined ? () => Date.UTC(2026, 0, 1) : () => clock.now().getTime();
  return {
    uuid: createUuidSequence(nowMs, (bytes) => {
      for (let i = 0; i < bytes.length; i++) bytes[i] = ids() & 0xff;
    }),
    random: () => jitter() / 0x1_0000_0000,
  };
}
