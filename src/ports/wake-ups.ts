/**
 * What another node may want to hear of: lanes are free, the intake table or the completion feed has grown, intents that
 * nodes left for this owner are taken up or declined.
 */
export const WAKE_UPS = ["lanes", "intake", "completions", "taken"] as const;
export type WakeUp = (typeof WAKE_UPS)[number];

/**
 * Hints between the nodes of one database, so that a node need not wait for its next poll. A hint may be lost, late,
 * repeated or about nothing. A node that gets one polls now; one that gets none polls a little later.
 */
export interface WakeUps {
  /** False: hints of other nodes do not arrive here, as far as is known. Then loops that wait for one look more often. */
  readonly hears: boolean;
  /** Soon, and together with the other hints of that moment. Never throws, never waits. */
  tell(wakeUp: WakeUp): void;
  /** Called with the hints of other nodes; and once with every hint after the connection was lost, because some may be missed. */
  hear(listener: (wakeUp: WakeUp) => void): void;
  /** Sends the last hints first, where the connection is up. */
  close(): Promise<void>;
}

export const noWakeUps: WakeUps = {
  hears: false,
  tell: () => undefined,
  hear: () => undefined,
  close: () => Promise.resolve(),
};
