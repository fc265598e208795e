/**
 * A node's answers to a submission, named by what may be done next. The list is closed and ordered by weight, for
 * endpoints that answer differently: a node that has the payload outweighs every refusal; among refusals, temporary
 * ones come before the final one; any answer outweighs none.
 */
export const SUBMIT_ANSWERS = [
  "accepted",
  "alreadyKnown",
  "nonceConsumed",
  "nonceTooHigh",
  "underpriced",
  "insufficientFunds",
  "rejected",
  "unknown",
] as const;
export type SubmitAnswer = (typeof SUBMIT_ANSWERS)[number];

export interface SubmitResult {
  readonly answer: SubmitAnswer;
  /** The node's error text, shortened. It is shown to people and never parsed again. */
  readonly detail: string | null;
  /** For `rejected`: the payload's gas exceeds this limit, which every refusing endpoint named. */
  readonly gasCap?: bigint;
}

/**
 * The permission to send was withdrawn before a connected socket took the bytes, so nothing was sent. This is not an
 * answer of a node, and not `unknown`: the next send need not wait. The claim stays, because only this process knows
 * that nothing was sent: no nonce moves (I3, I6).
 */
export interface NotStarted {
  readonly answer: "notStarted";
}
export const NOT_STARTED: NotStarted = { answer: "notStarted" };

export function isStarted<T extends SubmitResult>(result: T | NotStarted): result is T {
  return result.answer !== "notStarted";
}

export type TakenAnswer = "accepted" | "alreadyKnown";

/** True if the node has the payload: wait for a block. */
export function isTaken(answer: SubmitAnswer): answer is TakenAnswer {
  return answer === "accepted" || answer === "alreadyKnown";
}
