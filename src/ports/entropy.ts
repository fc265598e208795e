/** Chance as the application sees it: ids and jitter, replayable from one seed in simulation. */
export interface Entropy {
  /** UUID version 7: ordered by time of creation, so that primary keys grow to the right. */
  uuid(): string;
  /** Uniform in [0, 1). */
  random(): number;
}
