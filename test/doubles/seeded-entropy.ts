import { createUuidSequence } from "../../src/adapters/system/entropy.ts";
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

/** Small Fast Counter (PractRand): 128 bits of state, passes BigCrush, and needs nothing but 32-bit additions. */
function sfc32(seed: number): () => number {
  let a = seed | 0;
  let b = 0x9e3779b9 | 0;
  let c = 0x243f6a88 | 0;
  let count = 1;
  const next = () => {
    const sum = (((a + b) | 0) + count) | 0;
    count = (count + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < 16; i++) next();
  return next;
}
