/**
 * Kinds of hints: lanes without an owner, new rows in the intake table or the completion feed, requests or intake rows
 * that a lane's owner has handled, changed subscribers.
 */
export const WAKE_UPS = ["lanes", "intake", "completions", "taken", "webhooks"] as const;
export type WakeUp = (typeof WAKE_UPS)[number];

/**
 * Hints between the nodes of one database, so that a node need not wait for its next poll. A hint may be lost, late,
 * repeated or unfounded. A node that gets a hint polls now; without a hint it polls a little later.
 */
export interface WakeUps {
  /** False if hints of other nodes probably do not arrive. Then loops poll more often. */
  readonly isListening: boolean;
  /** Sends the hint soon, together with other pending hints. Never throws, never waits. */
  notify(wakeUp: WakeUp): void;
  /**
   * Registers a listener. It is called with the hints of other nodes, and with every kind of hint after a lost
   * connection, because some may be missed.
   */
  listen(listener: (wakeUp: WakeUp) => void): void;
  /** Closes the connection. Pending hints are sent first, if the connection is up. */
  close(): Promise<void>;
}

export const noWakeUps: WakeUps = {
  isListening: false,
  notify: () => undefined,
  listen: () => undefined,
  close: () => Promise.resolve(),
};
