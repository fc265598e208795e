/**
 * How many transactions of an address are mined, by the word of several endpoints. One of them may lie, and one may not
 * have come to the block in question yet: more than half of those that are up decide, so that of two both must agree, and
 * of three one is outvoted. A mined count only grows from block to block. So an endpoint that is behind can prove that a
 * count is reached, but not that it is not.
 */
export type CountAnswer =
  /** Its head is at or above the block that was asked about. */
  | { readonly kind: "says"; readonly count: number }
  /** Its head is below that block: it may count more once it gets there. */
  | { readonly kind: "behind"; readonly count: number }
  /** It is up as far as is known, and gave no answer this time. */
  | { readonly kind: "silent" };

export type CountVerdict =
  /** The count is at least what was claimed. */
  | { readonly kind: "proved" }
  /** It is not: so many are certain. */
  | { readonly kind: "refuted"; readonly count: number }
  /** An endpoint has not reached that block or not answered yet, or two contradict each other. */
  | { readonly kind: "open" };

/** Whether the claim that `claim` transactions are mined holds, by what each endpoint that is up says. */
export function judgeCount(claim: number, answers: readonly CountAnswer[]): CountVerdict {
  const certain = countReached(answers);
  if (certain >= claim) return { kind: "proved" };
  const most = countNotExceeded(answers);
  return most !== null && most < claim ? { kind: "refuted", count: certain } : { kind: "open" };
}

/** The highest count that more than half say has been reached. */
export function countReached(answers: readonly CountAnswer[]): number {
  const counts = answers.flatMap((answer) => (answer.kind === "silent" ? [] : answer.count)).sort((a, b) => b - a);
  return counts[moreThanHalf(answers) - 1] ?? 0;
}

/** The lowest count that more than half say was not exceeded at that block; null: too few have come to it. */
export function countNotExceeded(answers: readonly CountAnswer[]): number | null {
  const counts = answers.flatMap((answer) => (answer.kind === "says" ? answer.count : [])).sort((a, b) => a - b);
  return counts[moreThanHalf(answers) - 1] ?? null;
}

/** The count that every endpoint gives, at whatever block each stands; null where they differ or one is silent. */
export function countUnanimous(answers: readonly CountAnswer[]): number | null {
  const counts = new Set(answers.map((answer) => (answer.kind === "silent" ? null : answer.count)));
  const [count = null] = counts;
  return counts.size === 1 ? count : null;
}

/** The highest count that an endpoint gives. */
export function highestCount(answers: readonly CountAnswer[]): number {
  return Math.max(0, ...answers.map((answer) => (answer.kind === "silent" ? 0 : answer.count)));
}

function moreThanHalf({ length }: readonly CountAnswer[]): number {
  return Math.floor(length / 2) + 1;
}
