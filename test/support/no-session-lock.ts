import type { SessionLock } from "../../src/ports/session-lock.ts";

/** Like a connection behind a transaction pooler: no session lock is ever held. */
export const noSessionLock: SessionLock = {
  held: null,
  onChange: () => undefined,
  startOver: () => undefined,
  close: () => Promise.resolve(),
};
