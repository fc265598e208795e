import { FAILPOINTS, type Failpoint } from "../../src/ports/failpoints.ts";

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

/** Failpoints that only a request for a signature of a message reaches (test/application/signing/messages.test.ts). */
export const MESSAGE_FAILPOINTS: readonly Failpoint[] = ["message.committed", "message.signed", "message.stored"];

/** Failpoints that transactions and nonces reach. */
export const TRANSACTION_FAILPOINTS = FAILPOINTS.filter((name) => !MESSAGE_FAILPOINTS.includes(name));

/**
 * Failpoints that an ordinary transaction does not reach: those in NONCE_FAILPOINTS, that of an expired deadline
 * (test/application/nonces/valid-until.test.ts), and those of messages.
 */
export const BESIDE_THE_ROAD: readonly Failpoint[] = [...NONCE_FAILPOINTS, ...MESSAGE_FAILPOINTS, "lapse.committed"];
