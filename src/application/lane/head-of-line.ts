/** The transaction everything behind it waits for, and how long it has been that. */
export interface HeadOfLine {
  readonly nonce: number;
  /** Monotonic; before this term where the database says that it was sent before. */
  sinceMs: number;
  /** Monotonic: when this term first saw it at the head. */
  readonly seenMs: number;
  /** Reported as holding up others. */
  blocks: boolean;
  /** It was STUCK when last seen: once repaired, it has the lane's patience anew. */
  stuck: boolean;
}
