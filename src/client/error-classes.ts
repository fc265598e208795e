import type { Problem } from "../contract/schemas/problem.ts";

/**
 * Code of an error: those of a node (docs/errors.md), and five of the library and the SDK themselves. `UNREACHABLE`: no
 * answer. The request may or may not have been accepted; the same requestId may be sent again. `UNEXPECTED_ANSWER`:
 * something other than Fencepost answered, such as a proxy. `TIMEOUT`: the caller's time limit was reached. The request
 * may still be performed. `CONFIGURATION`: the options of `createFencepost` are wrong. `CLOSED`: `close()` was called.
 */
export type ClientErrorCode = Problem["code"] | "UNREACHABLE" | "UNEXPECTED_ANSWER" | "TIMEOUT" | LibraryErrorCode;

interface Failure {
  readonly code: ClientErrorCode;
  readonly status: number;
  readonly detail: string;
}

interface FailureOptions extends ErrorOptions {
  readonly problem?: Problem | null;
}

/** Whether the same request may succeed: `later`, `elsewhere` (at `ownerUrl`), or `never`. */
export type Retry = "never" | "later" | "elsewhere";

type ProblemMembers = Omit<Problem, "code" | "status" | "detail" | "type" | "title">;

/** Members of an error's problem document, depending on its code. */
export interface FencepostError extends ProblemMembers {
  /** Request id of the failed send, to look it up or to send it again. */
  readonly requestId?: string;
  /** CONFIGURATION: every mistake in the options, one line each, with the option's name. */
  readonly mistakes?: readonly string[];
}

/**
 * Base class of every failure, except the caller's own abort and errors of the caller's own callbacks. Distinguish
 * failures by class or by `code`.
 *
 * @example
 * try {
 *   await fencepost.send(intent);
 * } catch (error) {
 *   if (error instanceof FencepostError && error.retry === "later") await sendAgainLater(intent, error.requestId);
 *   else throw error;
 * }
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the members of the problem are copied one by one, none is required.
export class FencepostError extends Error {
  /** What failed, from a closed list. Stable: decide by it. */
  declare readonly code: ClientErrorCode;
  /** HTTP status; 0 if there was no answer. */
  declare readonly status: number;
  /** What happened this time, for people. */
  declare readonly detail: string;
  /** The problem document of the response; null if there is none. */
  declare readonly problem: Problem | null;
  /**
   * Whether the same request may succeed. `later`: after `retryAfterSeconds`, with the same request id. `elsewhere`: at
   * `ownerUrl`. `never`: change the request first.
   */
  declare readonly retry: Retry;
  /** Page about the code, in the package `fencepost`. */
  declare readonly docs: string;

  constructor({ code, status, detail }: Failure, { problem = null, cause }: FailureOptions = {}) {
    super(`${code}: ${detail}`, { cause });
    const docs = `fencepost/docs/${problem ? "errors.md" : "sdk.md#errors"}`;
    Object.assign(this, { name: nameOf(code), code, status, detail, problem, retry: retryOf(code, status), docs });
    // Members of the problem document must not overwrite those of Error or its prototype.
    for (const [name, value] of Object.entries(problem ?? {})) {
      if (!(name in this)) Object.assign(this, { [name]: value });
    }
  }
}

function retryOf(code: ClientErrorCode, status: number): Retry {
  if (code === "NOT_LEADER") return "elsewhere";
  return status === 429 || status >= 500 || code === "UNREACHABLE" || code === "TIMEOUT" ? "later" : "never";
}

/** Error name from a code: `NOT_LEADER` → `NotLeaderError`. The class name is not used, because minifiers change it. */
function nameOf(code: string): string {
  const words = code.toLowerCase().replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase());
  return `${words}Error`;
}

/** The request is not well-formed. `path`: the offending field. `hint`: what was probably meant. */
export class InvalidRequestError extends FencepostError {}
/** The API key is missing or not known. */
export class UnauthenticatedError extends FencepostError {}
/** A scope, a limit of the API key or a policy does not allow this. `rule`: which. */
export class ForbiddenError extends FencepostError {}
/** There is nothing by that name. */
export class NotFoundError extends FencepostError {}
/** The route does not take that method. */
export class MethodNotAllowedError extends FencepostError {}
/** Another node owns the lane. `ownerUrl`: its URL; null if it serves no requests. */
export class NotLeaderError extends FencepostError {}
/** The request id belongs to another payload. */
export class RequestIdReusedError extends FencepostError {}
/** The action conflicts with the current state. `txHash`: the mined transaction. */
export class ConflictError extends FencepostError {}
/** The feed's epoch changed. `epoch` and `resumeAfter`: the position to continue at. */
export class EpochChangedError extends FencepostError {}
/** The requested part of the feed was deleted. `resumeAfter`: sequence number after which the remaining part begins. */
export class FeedTruncatedError extends FencepostError {}
/** The request is larger than the node accepts. */
export class PayloadTooLargeError extends FencepostError {}
/** No live node holds this signer's key. */
export class UnknownSignerError extends FencepostError {}
/** The chain is not configured. */
export class UnknownChainError extends FencepostError {}
/**
 * The transaction was refused before it was accepted. `reason`: why. `revert`: the contract's error, with `name` and
 * `args` if the ABI was given.
 */
export class SubmissionRejectedError extends FencepostError {}
/** Too many requests wait. `retryAfterSeconds`: how long to stay away. */
export class QueueFullError extends FencepostError {}
/** A quota is exceeded, named by `rule` and `limit`. */
export class QuotaExceededError extends FencepostError {}
/** The service is unavailable. `outcome: "unknown"`: the request may have been performed. */
export class UnavailableError extends FencepostError {}
/** A mistake of Fencepost's own. */
export class InternalError extends FencepostError {}
/** No answer: the request may or may not have been accepted. */
export class UnreachableError extends FencepostError {}
/** Something other than Fencepost answered, such as a proxy. */
export class UnexpectedAnswerError extends FencepostError {}
/** The call's time limit was reached: the request may still be performed. */
export class TimeoutError extends FencepostError {}

type LibraryErrorCode = "CONFIGURATION" | "CLOSED";

/** Classes of the codes that the SDK has; those of the library are its own. */
const CLASSES: Readonly<Record<Exclude<ClientErrorCode, LibraryErrorCode>, typeof FencepostError>> = {
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
export function failureOf(failure: Failure, options?: FailureOptions): FencepostError {
  const { code } = failure;
  const Class = Object.hasOwn(CLASSES, code) ? CLASSES[code as keyof typeof CLASSES] : FencepostError;
  return new Class(failure, options);
}

export function unreachable(url: string, cause: unknown): FencepostError {
  return failureOf({ code: "UNREACHABLE", status: 0, detail: `${url} does not answer` }, { cause });
}

export function timedOut(detail: string): FencepostError {
  return failureOf({ code: "TIMEOUT", status: 0, detail });
}

/** Error of an argument that is wrong before anything is sent. */
export function invalidArgument(path: string, detail: string, cause?: unknown): FencepostError {
  const failure = { code: "INVALID_REQUEST", status: 400, detail: `${path}: ${detail}` } as const;
  return Object.assign(failureOf(failure, { cause }), { path });
}

/** Error of a call that waits for a state: the transaction ended without reaching that state. */
export function endedWithout(detail: string): FencepostError {
  return failureOf({ code: "CONFLICT", status: 409, detail });
}

export function fromProblem(problem: Problem, cause?: unknown): FencepostError {
  return failureOf(problem, { problem, cause });
}

export function unexpectedAnswer(status: number, text: string): FencepostError {
  const isRedirect = status === 0 || (status >= 300 && status < 400);
  const content = isRedirect ? "a redirect" : `a body that is not Fencepost's: ${text.slice(0, 200)}`;
  return failureOf({ code: "UNEXPECTED_ANSWER", status, detail: `status ${status} with ${content}` });
}

/** A copy of the error with this request id. */
export function ofRequest(error: FencepostError, requestId: string | undefined): FencepostError {
  const copy = Object.create(Object.getPrototypeOf(error), Object.getOwnPropertyDescriptors(error));
  return Object.assign(copy, { requestId });
}
