/** Randomness for the application: ids and jitter, replayable from a seed in simulations. */
export interface Entropy {
  /** UUID version 7: ordered by creation time, so that primary keys are appended. */
  uuid(): string;
  /** Random number, uniform in [0, 1). */
  random(): number;
}
