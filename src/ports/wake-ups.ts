/** What another node may want to hear of: lanes are free, the intake table or the completion feed has grown. */
export const WAKE_UPS = ["lanes", "intake", "completions"] as const;
export type WakeUp = (typeof WAKE_UPS)[number];

/**
 * Hints between the nodes of one database, so that a node need not wait for its next poll. A hint may be lost, late,
 * repeated or about nothing. A node that gets one polls now; one that gets none polls a little later.
 */
export interface WakeUps {
  /** Soon, and together with whatever else there is to tell. Never throws, never waits. */
  tell(wakeUp: WakeUp): void;
  /** What others told; and everything once, after a time in which nothing could be heard. */
  hear(listener: (wakeUp: WakeUp) => void): void;
  /** What was told last is still sent, where that takes no time. */
  close(): Promise<void>;
}

export const noWakeUps: WakeUps = {
  tell: () => undefined,
  hear: () => undefined,
  close: () => Promise.resolve(),
};
