/**
 * Mined transaction count of an address, according to several endpoints. One may report a false count, and one may lag.
 * More than half of those that are up decide: of two both must agree, of three one is outvoted. A mined count only
 * grows with blocks, so a lagging endpoint can prove that a count is reached, but not that it is not.
 */
export type CountAnswer =
  /** A count from an endpoint whose head is at or above the block in question. */
  | { readonly kind: "says"; readonly count: number }
  /** A count from an endpoint whose head is below the block in question: it may still grow. */
  | { readonly kind: "behind"; readonly count: number }
  /** The endpoint counts as up, but gave no answer this time. */
  | { readonly kind: "silent" };

export type CountVerdict =
  /** The count is proved to be at least the claimed one. */
  | { readonly kind: "proved" }
  /** The count is below the claimed one; only `count` is proved. */
  | { readonly kind: "refuted"; readonly count: number }
  /** Undecided: an endpoint has not reached that block or not answered, or two contradict each other. */
  | { readonly kind: "open" };

/** Decides whether `claim` transactions are mined, from the answers of all endpoints that are up. */
export function judgeCount(claim: number, answers: readonly CountAnswer[]): CountVerdict {
  const certain = countReached(answers);
  if (certain >= claim) return { kind: "proved" };
  const most = countNotExceeded(answers);
  return most !== null && most < claim ? { kind: "refuted", count: certain } : { kind: "open" };
}

/** Highest transaction count that more than half of the endpoints have reached. */
export function countReached(answers: readonly CountAnswer[]): number {
  const counts = answers.flatMap((answer) => (answer.kind === "silent" ? [] : answer.count)).sort((a, b) => b - a);
  return counts[moreThanHalf(answers) - 1] ?? 0;
}

/**
 * Lowest count that, according to more than half of the endpoints, is not exceeded at that block; null if too few have
 * reached it.
 */
export function countNotExceeded(answers: readonly CountAnswer[]): number | null {
  const counts = answers.flatMap((answer) => (answer.kind === "says" ? answer.count : [])).sort((a, b) => a - b);
  return counts[moreThanHalf(answers) - 1] ?? null;
}

/** The count that all endpoints report, each at its own head; null if they differ or one is silent. */
export function countUnanimous(answers: readonly CountAnswer[]): number | null {
  const counts = new Set(answers.map((answer) => (answer.kind === "silent" ? null : answer.count)));
  const [count = null] = counts;
  return counts.size === 1 ? count : null;
}

/** Highest count that any endpoint reports. */
export function highestCount(answers: readonly CountAnswer[]): number {
  return Math.max(0, ...answers.map((answer) => (answer.kind === "silent" ? 0 : answer.count)));
}

function moreThanHalf({ length }: readonly CountAnswer[]) {
  return Math.floor(length / 2) + 1;
}
