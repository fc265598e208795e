import { randomFillSync } from "node:crypto";
import type { Clock } from "../../ports/clock.ts";
import type { Entropy } from "../../ports/entropy.ts";
import { createUuidSequence, type FillRandom } from "./uuid.ts";

/** One call into the generator pays for this many bytes; an id takes sixteen. */
const POOL_BYTES = 4096;

export function createEntropy(clock: Pick<Clock, "now">): Entropy {
  return {
    uuid: createUuidSequence(() => clock.now().getTime(), pooledRandom()),
    random: () => Math.random(),
  };
}

function pooledRandom(): FillRandom {
  const pool = new Uint8Array(POOL_BYTES);
  let used = POOL_BYTES;
  return (bytes) => {
    if (used + bytes.length > POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    bytes.set(pool.subarray(used, used + bytes.length));
    used += bytes.length;
  };
}
