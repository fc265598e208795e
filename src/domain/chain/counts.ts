/**
 * Mined transaction count of an address, according to several endpoints. One may report a false count, and one may lag.
 * More than half of the endpoints that are up decide: of two both must agree, of three one is outvoted. A mined count
 * only grows with blocks. So a lagging endpoint can prove that a count has been reached, but not that it has not.
 */
export type CountAnswer =
  /** A count from an endpoint whose newest block is at or above the block in question. */
  | { readonly kind: "says"; readonly count: number }
  /** A count from an endpoint whose newest block is below the block in question: the count may still grow. */
  | { readonly kind: "behind"; readonly count: number }
  /** The endpoint counts as up, but gave no answer this time. */
  | { readonly kind: "silent" };

export type CountVerdict =
  /** The endpoints prove that the count is at least the claimed one. */
  | { readonly kind: "proved" }
  /** The count is below the claimed one. `count`: the highest count that the endpoints prove. */
  | { readonly kind: "refuted"; readonly count: number }
  /** Undecided: an endpoint has not reached the block in question or not answered, or two contradict each other. */
  | { readonly kind: "open" };

/** Decides whether `claim` transactions of the address are mined, from the answers of all endpoints that are up. */
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
 * Upper bound of the transaction count at the block in question: more than half of the endpoints report this count or
 * less. Null if too few of them have reached the block.
 */
export function countNotExceeded(answers: readonly CountAnswer[]): number | null {
  const counts = answers.flatMap((answer) => (answer.kind === "says" ? answer.count : [])).sort((a, b) => a - b);
  return counts[moreThanHalf(answers) - 1] ?? null;
}

/** The count that all endpoints report, each at its own newest block; null if they differ or one does not answer. */
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
