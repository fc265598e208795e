/**
 * Mined transaction count of an address, by several endpoints. One may report a false count, and one may lag. More than
 * half of those that are up decide: of two both must agree, of three one is outvoted. A mined count only grows with
 * blocks. So a lagging endpoint can prove that a count is reached, but not that it is not.
 */
export type CountAnswer =
  /** The endpoint's head is at or above the block in question. */
  | { readonly kind: "says"; readonly count: number }
  /** The endpoint's head is below that block: its count may still grow. */
  | { readonly kind: "behind"; readonly count: number }
  /** The endpoint counts as up, and gave no answer this time. */
  | { readonly kind: "silent" };

export type CountVerdict =
  /** The count is at least the claim. */
  | { readonly kind: "proved" }
  /** The count is below the claim: this many are proven. */
  | { readonly kind: "refuted"; readonly count: number }
  /** An endpoint has not reached that block or not answered, or two contradict each other. */
  | { readonly kind: "open" };

/** Decides whether `claim` transactions are mined, from the answers of all endpoints that are up. */
export function judgeCount(claim: number, answers: readonly CountAnswer[]): CountVerdict {
  const certain = countReached(answers);
  if (certain >= claim) return { kind: "proved" };
  const most = countNotExceeded(answers);
  return most !== null && most < claim ? { kind: "refuted", count: certain } : { kind: "open" };
}

/** Highest count that more than half of the endpoints have reached. */
export function countReached(answers: readonly CountAnswer[]): number {
  const counts = answers.flatMap((answer) => (answer.kind === "silent" ? [] : answer.count)).sort((a, b) => b - a);
  return counts[moreThanHalf(answers) - 1] ?? 0;
}

/** Lowest count that more than half report as not exceeded at that block; null if too few have reached it. */
export function countNotExceeded(answers: readonly CountAnswer[]): number | null {
  const counts = answers.flatMap((answer) => (answer.kind === "says" ? answer.count : [])).sort((a, b) => a - b);
  return counts[moreThanHalf(answers) - 1] ?? null;
}

/** The count that every endpoint gives, at its own head; null if they differ or one is silent. */
export function countUnanimous(answers: readonly CountAnswer[]): number | null {
  const counts = new Set(answers.map((answer) => (answer.kind === "silent" ? null : answer.count)));
  const [count = null] = counts;
  return counts.size === 1 ? count : null;
}

/** Highest count of any endpoint. */
export function highestCount(answers: readonly CountAnswer[]): number {
  return Math.max(0, ...answers.map((answer) => (answer.kind === "silent" ? 0 : answer.count)));
}

function moreThanHalf({ length }: readonly CountAnswer[]) {
  return Math.floor(length / 2) + 1;
}
