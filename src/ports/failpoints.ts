/**
 * Failpoints: named points in the code, each right after an effect such as a commit, at which a test can inject a
 * crash. Production passes `noFailpoints`; crash tests pass a function that kills the process or abandons the node. No
 * configuration can set them.
 */
export const FAILPOINTS = [
  "create.prepared",
  "allocate.committed",
  "sign.signed",
  "sign.committed",
  "broadcast.sent",
  "broadcast.committed",
  "receipt.found",
  "receipt.committed",
  "finality.decided",
  "complete.committed",
  "withdraw.committed",
  "resubmit.claimed",
  "another.signed",
  "another.committed",
  "giveUp.committed",
  "lapse.committed",
  "shiftDown.committed",
  "reserve.committed",
  "release.committed",
  "expire.committed",
  "bind.committed",
  "message.committed",
  "message.signed",
  "message.stored",
  "lease.acquired",
  "lease.renewed",
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

export type Failpoints = (name: Failpoint) => Promise<void> | void;

export const noFailpoints: Failpoints = () => undefined;
