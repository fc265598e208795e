import type { Problem } from "../contract/problem.ts";

/** Codes of EIP-1193, EIP-1474 and geth; a send never gets one that makes a wallet library send again by itself. */
const CODES = { reverted: 3, unauthorized: 4100, unsupported: 4200, otherChain: 4901, rejected: -32003 } as const;

interface SendErrorOptions extends ErrorOptions {
  readonly code?: number;
  /** What a contract said as it reverted. */
  readonly data?: string;
  /** In the words that a node would use: by them viem and ethers know what happened. */
  readonly details?: string;
  readonly requestId?: string;
  readonly txId?: string;
}

/** Why nothing was sent, or why there is no hash yet: `txId` is there where the transaction was accepted all the same. */
export class FencepostSendError extends Error {
  /** As in JSON-RPC. */
  readonly code: number;
  readonly shortMessage: string;
  readonly details: string;
  /** Send again with this one: then it cannot be done twice. */
  readonly requestId: string | null;
  readonly txId: string | null;
  declare readonly data?: string;

  constructor(message: string, options: SendErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = "FencepostSendError";
    this.shortMessage = message;
    this.code = options.code ?? CODES.rejected;
    this.details = options.details ?? message;
    this.requestId = options.requestId ?? null;
    this.txId = options.txId ?? null;
    // viem takes any error with this member for a revert.
    if (options.data !== undefined) this.data = options.data;
  }
}

export function unsupported(what: string): FencepostSendError {
  return new FencepostSendError(what, { code: CODES.unsupported });
}

type Failure = Pick<Problem, "code" | "status" | "detail"> & { readonly problem?: Problem | null };

/** Whether the same request may have been accepted, or may be later: then the same id is sent again. */
export function isUndecided(error: unknown): boolean {
  const code = codeOf(error);
  if (code === "UNEXPECTED_ANSWER") return (error as Failure).status >= 500;
  return code === "UNREACHABLE" || code === "UNAVAILABLE" || code === "TIMEOUT";
}

/** A failure of `send` in the words of JSON-RPC. */
export function sendErrorOf(error: unknown, requestId: string): unknown {
  const code = codeOf(error);
  if (code === null) return error;
  const { detail, problem } = error as Failure;
  const about = { cause: error, requestId };
  if (isUndecided(error)) {
    const unknown = `whether it was accepted is not known (${detail}): send it again with the request id ${requestId}`;
    return new FencepostSendError(unknown, about);
  }
  if (problem?.reason === "REVERT") return revertError(problem, about);
  const details =
    problem?.reason === "INSUFFICIENT_FUNDS" ? `insufficient funds for gas * price + value: ${detail}` : detail;
  return new FencepostSendError(`${code}: ${detail}`, { ...about, details, code: rpcCodeOf(code) });
}

function revertError({ revert, detail }: Problem, about: SendErrorOptions): FencepostSendError {
  const reason = revert?.message ?? revert?.name;
  const details = reason === null || reason === undefined ? "execution reverted" : `execution reverted: ${reason}`;
  const data = revert === undefined ? {} : { data: revert.data };
  return new FencepostSendError(detail, { ...about, ...data, details, code: CODES.reverted });
}

function rpcCodeOf(code: string): number {
  if (code === "UNAUTHENTICATED" || code === "FORBIDDEN" || code === "UNKNOWN_SIGNER") return CODES.unauthorized;
  return code === "UNKNOWN_CHAIN" ? CODES.otherChain : CODES.rejected;
}

/** Of an error of the SDK or of the library; null for any other. */
export function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error) || !("detail" in error)) return null;
  return typeof error.code === "string" ? error.code : null;
}
