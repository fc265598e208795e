/**
 * What a node said to a submission, named by what it permits next. The list is closed, and goes from most to least telling
 * where several endpoints say different things: a node that holds the payload outweighs every refusal elsewhere; among
 * refusals, those that leave a way on come before the final one; any word outweighs silence.
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
  /** The node's own words, shortened; shown to people, never parsed again. */
  readonly detail: string | null;
  /** With `rejected`: it asks for more gas than this limit, which every endpoint that refused it named. */
  readonly gasCap?: bigint;
}

/**
 * The permission to send was gone when the bytes were to be handed to a connected socket, so nothing left for any endpoint.
 * No answer of a node, and not `unknown`: the next send need not wait its interval. The claim stays, because only this
 * process knows of it: no nonce moves and nothing is given up on account of it (I3, I6).
 */
export interface NotStarted {
  readonly answer: "notStarted";
}
export const NOT_STARTED: NotStarted = { answer: "notStarted" };

export function isStarted<T extends SubmitResult>(result: T | NotStarted): result is T {
  return result.answer !== "notStarted";
}

export type TakenAnswer = "accepted" | "alreadyKnown";

/** The node holds the payload: nothing more to do until a block says otherwise. */
export function isTaken(answer: SubmitAnswer): answer is TakenAnswer {
  return answer === "accepted" || answer === "alreadyKnown";
}
