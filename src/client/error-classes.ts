import type { Problem } from "../contract/problem.ts";

/**
 * `UNREACHABLE`: no answer came, so whether the request was taken is unknown; the same requestId may be sent again.
 * `UNEXPECTED_ANSWER`: something that is not Fencepost answered, a proxy for example.
 * `TIMEOUT`: the time that the caller gave is over. What was asked for may be done all the same.
 */
export type ClientErrorCode = Problem["code"] | "UNREACHABLE" | "UNEXPECTED_ANSWER" | "TIMEOUT";

interface Failure {
  readonly code: ClientErrorCode;
  readonly status: number;
  readonly detail: string;
}

type ProblemMembers = Omit<Problem, "code" | "status" | "detail" | "type" | "title">;

/** What the classes below say of themselves: the members that a problem of their code has. */
export interface FencepostError extends ProblemMembers {
  /** Of what could not be sent: the id to look for it with, or to send it again with. */
  readonly requestId?: string;
}

/** Every failure of a call, except the abort that the caller asked for. Decide by class or by `code`. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the members of the problem are copied one by one, none is required.
export class FencepostError extends Error {
  readonly code: ClientErrorCode;
  /** 0 where no answer came. */
  readonly status: number;
  readonly detail: string;
  /** The whole problem document; null where there was none. */
  readonly problem: Problem | null;

  constructor({ code, status, detail }: Failure, options: ErrorOptions & { readonly problem?: Problem } = {}) {
    super(`${code}: ${detail}`, options);
    this.name = nameOf(code);
    this.code = code;
    this.status = status;
    this.detail = detail;
    this.problem = options.problem ?? null;
    // What an error has already, its prototype too, is not the answer's to say.
    for (const [name, value] of Object.entries(this.problem ?? {})) {
      if (!(name in this)) Object.assign(this, { [name]: value });
    }
  }
}

/** `NOT_LEADER` → `NotLeaderError`: minifying changes the names of classes. */
function nameOf(code: string): string {
  const words = `${code}_ERROR`.toLowerCase().split("_");
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

export class InvalidRequestError extends FencepostError {}
export class UnauthenticatedError extends FencepostError {}
export class ForbiddenError extends FencepostError {}
export class NotFoundError extends FencepostError {}
export class MethodNotAllowedError extends FencepostError {}
/** `ownerUrl`: the node to ask; null where that node takes no requests. */
export class NotLeaderError extends FencepostError {}
export class RequestIdReusedError extends FencepostError {}
/** `txHash`: what was mined. */
export class ConflictError extends FencepostError {}
/** `epoch` and `resumeAfter`: where the feed goes on. */
export class EpochChangedError extends FencepostError {}
/** `resumeAfter`: what is still kept begins after it. */
export class FeedTruncatedError extends FencepostError {}
export class PayloadTooLargeError extends FencepostError {}
export class UnknownSignerError extends FencepostError {}
export class UnknownChainError extends FencepostError {}
/** `reason` says why, `revert` what the contract said: `name` and `args` of its own errors where the ABI was given. */
export class SubmissionRejectedError extends FencepostError {}
export class QueueFullError extends FencepostError {}
/** `rule` and `limit`. */
export class QuotaExceededError extends FencepostError {}
/** `outcome: "unknown"`: it may have been done. */
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

/** Of the class that goes with its code. A newer node may have codes that this SDK does not know. */
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

/** It ended before it had what was waited for. */
export function endedWithout(detail: string): FencepostError {
  return failureOf({ code: "CONFLICT", status: 409, detail });
}

export function fromProblem(problem: Problem, cause?: unknown): FencepostError {
  return failureOf(problem, cause === undefined ? { problem } : { problem, cause });
}

export function unexpectedAnswer(status: number, text: string): FencepostError {
  const isRedirect = status === 0 || (status >= 300 && status < 400);
  const said = isRedirect
    ? "a redirect, which is not followed"
    : `a body that is not Fencepost's: ${text.slice(0, 200)}`;
  const detail = `status ${status} with ${said}`;
  return failureOf({ code: "UNEXPECTED_ANSWER", status, detail });
}

/** The same failure, of this request. */
export function ofRequest(error: FencepostError, requestId: string | undefined): FencepostError {
  const copy = Object.create(Object.getPrototypeOf(error), Object.getOwnPropertyDescriptors(error));
  return Object.assign(copy, { requestId });
}
