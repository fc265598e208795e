import type { Problem } from "../contract/schemas/problem.ts";

/**
 * `UNREACHABLE`: no answer. The request may or may not have been accepted; the same requestId may be sent again.
 * `UNEXPECTED_ANSWER`: something other than Fencepost answered, such as a proxy. `TIMEOUT`: the caller's time limit was
 * reached. The request may still be performed.
 */
export type ClientErrorCode = Problem["code"] | "UNREACHABLE" | "UNEXPECTED_ANSWER" | "TIMEOUT";

interface Failure {
  readonly code: ClientErrorCode;
  readonly status: number;
  readonly detail: string;
}

type ProblemMembers = Omit<Problem, "code" | "status" | "detail" | "type" | "title">;

/** Members of an error's problem document, depending on its code. */
export interface FencepostError extends ProblemMembers {
  /** Request id of the failed send, to look it up or to send it again. */
  readonly requestId?: string;
}

/** Base class of every failure of a call, except the caller's own abort. Distinguish failures by class or by `code`. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the members of the problem are copied one by one, none is required.
export class FencepostError extends Error {
  readonly code: ClientErrorCode;
  /** HTTP status; 0 if there was no answer. */
  readonly status: number;
  readonly detail: string;
  /** The problem document of the response; null if there is none. */
  readonly problem: Problem | null;

  constructor({ code, status, detail }: Failure, options: ErrorOptions & { readonly problem?: Problem } = {}) {
    super(`${code}: ${detail}`, options);
    this.name = nameOf(code);
    this.code = code;
    this.status = status;
    this.detail = detail;
    this.problem = options.problem ?? null;
    // Members of the problem document must not overwrite those of Error or its prototype.
    for (const [name, value] of Object.entries(this.problem ?? {})) {
      if (!(name in this)) Object.assign(this, { [name]: value });
    }
  }
}

/** Error name from a code: `NOT_LEADER` → `NotLeaderError`. The class name is not used, because minifiers change it. */
function nameOf(code: string): string {
  const words = `${code}_ERROR`.toLowerCase().split("_");
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

export class InvalidRequestError extends FencepostError {}
export class UnauthenticatedError extends FencepostError {}
export class ForbiddenError extends FencepostError {}
export class NotFoundError extends FencepostError {}
export class MethodNotAllowedError extends FencepostError {}
/** Another node owns the lane. `ownerUrl`: its URL; null if it serves no requests. */
export class NotLeaderError extends FencepostError {}
export class RequestIdReusedError extends FencepostError {}
/** The action conflicts with the current state. `txHash`: the mined transaction. */
export class ConflictError extends FencepostError {}
/** The feed's epoch changed. `epoch` and `resumeAfter`: the position to continue at. */
export class EpochChangedError extends FencepostError {}
/** The requested part of the feed was deleted. `resumeAfter`: sequence number after which the remaining part begins. */
export class FeedTruncatedError extends FencepostError {}
export class PayloadTooLargeError extends FencepostError {}
export class UnknownSignerError extends FencepostError {}
export class UnknownChainError extends FencepostError {}
/**
 * The transaction was refused before it was accepted. `reason`: why. `revert`: the contract's error, with `name` and
 * `args` if the ABI was given.
 */
export class SubmissionRejectedError extends FencepostError {}
export class QueueFullError extends FencepostError {}
/** A quota is exceeded, named by `rule` and `limit`. */
export class QuotaExceededError extends FencepostError {}
/** The service is unavailable. `outcome: "unknown"`: the request may have been performed. */
export class UnavailableError extends FencepostError {}
export class InternalError extends FencepostError {}
export class UnreachableError extends FencepostError {}
export class UnexpectedAnswerError extends FencepostError {}
export class TimeoutError extends FencepostError {}

const CLASSES: Readonly<Record<ClientErrorCode, typeof FencepostError>> = {
  INVALID_REQUEST: InvalidRequestError,
  UNAUTHENTICATED: UnauthenticatedError,
  FORBIDDEN: ForbiddenError,
  NOT_FOUND: NotFoundError,
  METHOD_NOT_ALLOWED: MethodNotAllowedError,
  NOT_LEADER: NotLeaderError,
  REQUEST_ID_REUSED: RequestIdReusedError,
  CONFLICT: ConflictError,
  EPOCH_CHANGED: EpochChangedError,
  FEED_TRUNCATED: FeedTruncatedError,
  PAYLOAD_TOO_LARGE: PayloadTooLargeError,
  UNKNOWN_SIGNER: UnknownSignerError,
  UNKNOWN_CHAIN: UnknownChainError,
  SUBMISSION_REJECTED: SubmissionRejectedError,
  QUEUE_FULL: QueueFullError,
  QUOTA_EXCEEDED: QuotaExceededError,
  UNAVAILABLE: UnavailableError,
  INTERNAL: InternalError,
  UNREACHABLE: UnreachableError,
  UNEXPECTED_ANSWER: UnexpectedAnswerError,
  TIMEOUT: TimeoutError,
};

/** Creates an error of the class for a code. A newer node may have codes that this SDK does not know. */
function failureOf(failure: Failure, options?: ErrorOptions & { readonly problem?: Problem }): FencepostError {
  const Class = Object.hasOwn(CLASSES, failure.code) ? CLASSES[failure.code] : FencepostError;
  return new Class(failure, options);
}

export function unreachable(url: string, cause: unknown): FencepostError {
  return failureOf({ code: "UNREACHABLE", status: 0, detail: `${url} does not answer` }, { cause });
}

export function timedOut(detail: string, cause?: unknown): FencepostError {
  return failureOf({ code: "TIMEOUT", status: 0, detail }, cause === undefined ? {} : { cause });
}

/** Error of a call that waits for a state: the transaction ended without reaching that state. */
export function endedWithout(detail: string): FencepostError {
  return failureOf({ code: "CONFLICT", status: 409, detail });
}

export function fromProblem(problem: Problem, cause?: unknown): FencepostError {
  return failureOf(problem, cause === undefined ? { problem } : { problem, cause });
}

export function unexpectedAnswer(status: number, text: string): FencepostError {
  const isRedirect = status === 0 || (status >= 300 && status < 400);
  const content = isRedirect
    ? "a redirect, which is not followed"
    : `a body that is not Fencepost's: ${text.slice(0, 200)}`;
  const detail = `status ${status} with ${content}`;
  return failureOf({ code: "UNEXPECTED_ANSWER", status, detail });
}

/** A copy of the error with this request id. */
export function ofRequest(error: FencepostError, requestId: string | undefined): FencepostError {
  const copy = Object.create(Object.getPrototypeOf(error), Object.getOwnPropertyDescriptors(error));
  return Object.assign(copy, { requestId });
}
