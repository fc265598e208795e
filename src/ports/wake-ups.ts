/**
 * Kinds of hints: lanes are free, the intake table or the completion feed has grown, enqueued requests were processed
 * by their owner.
 */
export const WAKE_UPS = ["lanes", "intake", "completions", "taken"] as const;
export type WakeUp = (typeof WAKE_UPS)[number];

/**
 * Hints between the nodes of one database, so that a node need not wait for its next poll. A hint may be lost, late,
 * repeated or about nothing. A node that gets one polls now; one that gets none polls a little later.
 */
export interface WakeUps {
  /** False if, as far as known, hints of other nodes do not arrive. Then loops poll more often. */
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
