import type { SessionLock } from "../../src/ports/session-lock.ts";

/** A session lock that is never held, as behind a transaction pooler. */
export const noSessionLock: SessionLock = {
  held: null,
  onChange: () => undefined,
  startOver: () => undefined,
  close: () => Promise.resolve(),
};
