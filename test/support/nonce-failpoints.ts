import type { Failpoint } from "../../src/ports/failpoints.ts";

/** Those that only nonces without a create come by: reserved, given back, expired, given up, moved, filled. */
export const NONCE_FAILPOINTS: readonly Failpoint[] = [
  "giveUp.committed",
  "shiftDown.committed",
  "reserve.committed",
  "release.committed",
  "expire.committed",
  "bind.committed",
];

/** Those that no ordinary road comes by: of nonces, and of a time that is over (test/application/nonces/valid-until.test.ts). */
export const BESIDE_THE_ROAD: readonly Failpoint[] = [...NONCE_FAILPOINTS, "lapse.committed"];
