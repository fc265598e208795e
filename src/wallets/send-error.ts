import { type ClientErrorCode, FencepostError } from "../client/error-classes.ts";
import type { Problem } from "../contract/schemas/problem.ts";

/**
 * Error codes of EIP-1193, EIP-1474 and geth. A failed send never gets a code after which a wallet library repeats it
 * by itself.
 */
const CODES = { reverted: 3, unauthorized: 4100, unsupported: 4200, otherChain: 4901, rejected: -32003 } as const;

interface SendErrorOptions extends ErrorOptions {
  readonly code?: number;
  /** What failed, if the cause does not say it. */
  readonly failure?: ClientErrorCode;
  /** Revert data of the contract. */
  readonly data?: string;
  /** Usual error text of a node, by which viem and ethers recognise the reason. */
  readonly details?: string;
  readonly requestId?: string;
  readonly txId?: string;
}

type Base = new (
  ...failure: ConstructorParameters<typeof FencepostError>
) => Omit<FencepostError, "code" | "requestId" | "txId">;

/**
 * Error of a send: nothing was sent, or there is no hash yet. `txId` is set if the transaction was accepted. It is a
 * FencepostError with one exception: `code` is a number, because viem and ethers decide by it whether to send again.
 */
export class FencepostSendError extends (FencepostError as unknown as Base) {
  /** JSON-RPC error code. */
  declare readonly code: number;
  /** What failed, from the closed list of FencepostError's `code`. */
  readonly failure: ClientErrorCode;
  readonly shortMessage: string;
  readonly details: string;
  /** Request id of the failed send. A repeat with this id takes effect only once. */
  readonly requestId: string | null;
  readonly txId: string | null;
  declare readonly data?: string;

  constructor(message: string, options: SendErrorOptions = {}) {
    // Not by `instanceof`: the error may come from another copy of the SDK, such as fencepost-client.
    const known = codeOf(options.cause) === null ? null : (options.cause as FencepostError);
    const failure = known?.code ?? options.failure ?? "INVALID_REQUEST";
    super({ code: failure, status: known?.status ?? 0, detail: message }, { cause: options.cause });
    const { problem = null, docs = DOCS } = known ?? {};
    Object.assign(this, { name: "FencepostSendError", message, code: options.code ?? CODES.rejected, problem, docs });
    this.failure = failure;
    this.shortMessage = message;
    this.details = options.details ?? message;
    this.requestId = options.requestId ?? null;
    this.txId = options.txId ?? null;
    // Set `data` only if there is any: viem treats every error with this member as a revert.
    if (options.data !== undefined) this.data = options.data;
  }
}

/** Page about the errors of wallet libraries. */
const DOCS = "fencepost/docs/viem.md#errors";

export function unsupported(what: string): FencepostSendError {
  return new FencepostSendError(what, { code: CODES.unsupported });
}

type Failure = Pick<Problem, "code" | "status" | "detail"> & { readonly problem?: Problem | null };

/** True if the send may have been accepted, or may still be accepted: repeat it only with the same request id. */
export function isUndecided(error: unknown): boolean {
  const code = codeOf(error);
  if (code === "UNEXPECTED_ANSWER") return (error as Failure).status >= 500;
  return code === "UNREACHABLE" || code === "UNAVAILABLE" || code === "TIMEOUT";
}

/** Converts a failure of `send` to a JSON-RPC error. */
export function sendErrorOf(error: unknown, requestId: string): unknown {
  const code = codeOf(error);
  if (code === null) return error;
  const { detail, problem } = error as Failure;
  const about = { cause: error, requestId };
  if (isUndecided(error)) {
    const unknown = `it may have been accepted (${detail}): send it again with the request id ${requestId}`;
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

/** The code of an error of the SDK or the library; null for any other error. */
export function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error) || !("detail" in error)) return null;
  return typeof error.code === "string" ? error.code : null;
}
