import type { Problem } from "../contract/problem.ts";

/**
 * `UNREACHABLE`: no answer came, so whether the request was taken is unknown; repeat it with the same requestId.
 * `UNEXPECTED_ANSWER`: something that is not Fencepost answered, a proxy for example.
 */
export type ClientErrorCode = Problem["code"] | "UNREACHABLE" | "UNEXPECTED_ANSWER";

/** Every failure of a client call, except the abort that the caller asked for. Decide by `code`. */
export class FencepostApiError extends Error {
  readonly code: ClientErrorCode;
  /** 0 where no answer came. */
  readonly status: number;
  readonly detail: string;
  /** The whole problem document, with `path`, `reason`, `resumeAfter` and the like; null where there was none. */
  readonly problem: Problem | null;

  constructor(
    failure: { readonly code: ClientErrorCode; readonly status: number; readonly detail: string },
    options: ErrorOptions & { readonly problem?: Problem } = {},
  ) {
    super(`${failure.code}: ${failure.detail}`, options);
    this.name = "FencepostApiError";
    this.code = failure.code;
    this.status = failure.status;
    this.detail = failure.detail;
    this.problem = options.problem ?? null;
  }
}

export function unreachable(url: string, cause: unknown): FencepostApiError {
  return new FencepostApiError({ code: "UNREACHABLE", status: 0, detail: `${url} does not answer` }, { cause });
}

export function fromProblem(problem: Problem): FencepostApiError {
  const { code, status, detail } = problem;
  return new FencepostApiError({ code, status, detail }, { problem });
}

export function unexpectedAnswer(status: number, text: string): FencepostApiError {
  const detail = `status ${status} with a body that is not Fencepost's: ${text.slice(0, 200)}`;
  return new FencepostApiError({ code: "UNEXPECTED_ANSWER", status, detail });
}
