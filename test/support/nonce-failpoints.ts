import type { Failpoint } from "../../src/ports/failpoints.ts";

/**
 * Failpoints that are reached only if something other than a create happens to a nonce: it is reserved, released,
 * expired, given up, moved or filled.
 */
export const NONCE_FAILPOINTS: readonly Failpoint[] = [
  "giveUp.committed",
  "shiftDown.committed",
  "reserve.committed",
  "release.committed",
  "expire.committed",
  "bind.committed",
];

/**
 * Failpoints that an ordinary transaction does not reach: those in NONCE_FAILPOINTS, and that of an expired deadline
 * (test/application/nonces/valid-until.test.ts).
 */
export const BESIDE_THE_ROAD: readonly Failpoint[] = [...NONCE_FAILPOINTS, "lapse.committed"];
