/**
 * A node's possible answers to a submitted transaction, named by what may be done next. The list is complete. If
 * endpoints answer differently, the answer that is earliest in the list counts: first those of a node that has the
 * payload, then temporary refusals, then the final refusal, then no answer. But a final refusal counts only if every
 * endpoint that was called has answered; otherwise the result is `unknown`.
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
  /** For `rejected`: the gas limit that the payload exceeds. Set only if every refusing endpoint named one. */
  readonly gasCap?: bigint;
}

/**
 * The permission to send ended before the bytes were handed to a connected socket, so nothing was sent. This is neither
 * a node's answer nor `unknown`: the next send need not wait. The claim (the stored right to send) stays in the
 * database, because only this process knows that nothing was sent. So the transaction keeps its nonce (I3, I6).
 */
export interface NotStarted {
  readonly answer: "notStarted";
}
export const NOT_STARTED: NotStarted = { answer: "notStarted" };

export function isStarted<T extends SubmitResult>(result: T | NotStarted): result is T {
  return result.answer !== "notStarted";
}

export type TakenAnswer = "accepted" | "alreadyKnown";

/** True if the answer means that the node has the payload, so that only a block is missing. */
export function isTaken(answer: SubmitAnswer): answer is TakenAnswer {
  return answer === "accepted" || answer === "alreadyKnown";
}
