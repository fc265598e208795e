import type { SessionLock } from "../../src/ports/session-lock.ts";

/** As behind a transaction pooler: none is ever held. */
export const noSessionLock: SessionLock = {
  held: null,
  onChange: () => undefined,
  startOver: () => undefined,
  close: () => Promise.resolve(),
};
