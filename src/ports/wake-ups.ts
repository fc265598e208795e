/**
 * Kinds of hints: lanes are free, the intake table or the completion feed has grown, requests for this owner were taken
 * or declined.
 */
export const WAKE_UPS = ["lanes", "intake", "completions", "taken"] as const;
export type WakeUp = (typeof WAKE_UPS)[number];

/**
 * Hints between the nodes of one database, so that a node need not wait for its next poll. A hint may be lost, late,
 * repeated or about nothing. A node that gets one polls now; one that gets none polls a little later.
 */
export interface WakeUps {
  /** False if hints of other nodes do not arrive, as far as known. Then loops poll more often. */
  readonly isListening: boolean;
  /** Sends soon, together with other hints of the moment. Never throws, never waits. */
  notify(wakeUp: WakeUp): void;
  /** Called with the hints of other nodes; and with every kind after a lost connection, because some may be missed. */
  listen(listener: (wakeUp: WakeUp) => void): void;
  /** Sends pending hints first, if the connection is up. */
  close(): Promise<void>;
}

export const noWakeUps: WakeUps = {
  isListening: false,
  notify: () => undefined,
  listen: () => undefined,
  close: () => Promise.resolve(),
};
