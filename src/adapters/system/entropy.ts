import { generateKeyPairSync, randomFillSync } from "node:crypto";
import type { Clock } from "../../ports/clock.ts";
import type { Entropy } from "../../ports/entropy.ts";
import { createUuidSequence } from "./uuid.ts";

export function createEntropy(clock: Pick<Clock, "now">): Entropy {
  return { uuid: createUuidSequence(() => clock.now().getTime(), randomFillSync), random: () => Math.random() };
}

/** Of a process, for as long as it lives; the private half leaves it never (Ed25519). */
export function createKeyPair() {
  return generateKeyPairSync("ed25519");
}
