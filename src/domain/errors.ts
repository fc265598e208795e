import type { Hash, Hex } from "./lane.ts";

/**
 * The error catalogue: every failure a caller can see has one code here, with its HTTP status and who may retry.
 * docs/errors.md and the OpenAPI document are tested against it.
 */
export const ERROR_CATALOGUE = {
  INVALID_REQUEST: { status: 400, retry: "never", title: "The request is not well-formed" },
  UNAUTHENTICATED: { status: 401, retry: "never", title: "An API key is required" },
  FORBIDDEN: { status: 403, retry: "never", title: "This is not allowed" },
  NOT_FOUND: { status: 404, retry: "never", title: "There is nothing by that name" },
  METHOD_NOT_ALLOWED: { status: 405, retry: "never", title: "This route does not take that method" },
  NOT_LEADER: { status: 409, retry: "elsewhere", title: "Another node acts for this signer" },
  REQUEST_ID_REUSED: { status: 409, retry: "never", title: "The request id belongs to another payload" },
  CONFLICT: { status: 409, retry: "never", title: "The current state does not allow this" },
  EPOCH_CHANGED: { status: 409, retry: "never", title: "The feed began a new epoch" },
  FEED_TRUNCATED: { status: 410, retry: "never", title: "That part of the feed is no longer kept" },
  PAYLOAD_TOO_LARGE: { status: 413, retry: "never", title: "The request is too large" },
  UNKNOWN_SIGNER: { status: 422, retry: "never", title: "No live node holds this signer's key" },
  UNKNOWN_CHAIN: { status: 422, retry: "never", title: "This chain is not configured" },
  SUBMISSION_REJECTED: { status: 422, retry: "never", title: "The chain would refuse this transaction" },
  QUEUE_FULL: { status: 429, retry: "later", title: "Too many requests are waiting" },
  QUOTA_EXCEEDED: { status: 429, retry: "later", title: "This API key has used what it may" },
  UNAVAILABLE: { status: 503, retry: "later", title: "A service that Fencepost needs does not answer" },
  INTERNAL: { status: 500, retry: "later", title: "Fencepost made a mistake" },
} as const satisfies Record<string, { status: number; retry: "never" | "later" | "elsewhere"; title: string }>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;

export const REJECTION_REASONS = [
  "INVALID_INPUT",
  "INSUFFICIENT_FUNDS",
  "REVERT",
  "GAS_TOO_LOW",
  "GAS_OVER_BLOCK",
  "NO_CODE",
  "FEE_TOO_LOW",
  "FEE_OVER_CEILING",
  "INVALID_SIGNATURE",
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];

interface RevertExtra {
  readonly name: string | null;
  readonly message: string | null;
  readonly data: Hex;
  /** Arguments of the contract's error, decoded with the payload's ABI. */
  readonly args?: readonly unknown[];
}

/** Members of a problem document beside code, title and detail. */
export interface ErrorExtras {
  /** Dotted path of the offending field, for INVALID_REQUEST. */
  readonly path?: string;
  /** For INVALID_REQUEST: what the caller probably meant. */
  readonly hint?: string;
  readonly reason?: RejectionReason;
  readonly revert?: RevertExtra;
  readonly dependsOnPending?: boolean;
  /**
   * Base fee in wei. For FEE_TOO_LOW: the newest block's, or the last one that two endpoints agreed on if that is
   * lower. For UNAVAILABLE: the one that a single endpoint reports and no block confirms yet.
   */
  readonly baseFeePerGas?: string;
  readonly retryAfterSeconds?: number;
  readonly ownerUrl?: string | null;
  /** For FORBIDDEN and QUOTA_EXCEEDED: the rule that refuses the request. */
  readonly rule?: string;
  /** For QUOTA_EXCEEDED: the rule's limit. */
  readonly limit?: number;
  readonly txId?: string;
  /** For CONFLICT: hash of the transaction's attempt that was mined. */
  readonly txHash?: Hash;
  /** For CONFLICT: the lane's next nonce, the only one that the create could have got. */
  readonly nextNonce?: number;
  readonly outcome?: "unknown";
  readonly epoch?: number;
  readonly resumeAfter?: number;
}

export class FencepostError extends Error {
  readonly code: ErrorCode;
  readonly extras: ErrorExtras;

  constructor(code: ErrorCode, detail: string, { cause, ...extras }: ErrorExtras & ErrorOptions = {}) {
    super(detail, cause === undefined ? undefined : { cause });
    this.name = "FencepostError";
    this.code = code;
    this.extras = extras;
  }

  get status(): number {
    return ERROR_CATALOGUE[this.code].status;
  }
}

export function invalid(path: string, detail: string): FencepostError {
  return new FencepostError("INVALID_REQUEST", `${path === "" ? "body" : path}: ${detail}`, { path });
}

/** Error for a create that arrives after its own `validUntil`. */
export function tooLate(): FencepostError {
  return invalid("validUntil", "is not in the future by the database's clock; nothing was accepted");
}

/**
 * INVALID_REQUEST with a hint at what the caller probably meant. The hint is for people, and for programs that show it
 * beside the field.
 */
export function invalidWithHint(path: string, detail: string, hint: string): FencepostError {
  return new FencepostError("INVALID_REQUEST", `${path}: ${detail}; ${hint}`, { path, hint });
}

/** Error for a request that a policy refuses. Nothing was counted or changed. */
export function forbiddenBy({ rule, detail }: { rule: string; detail: string }): FencepostError {
  return new FencepostError("FORBIDDEN", detail, { rule });
}

export function unavailable(detail: string, cause?: unknown): FencepostError {
  return new FencepostError("UNAVAILABLE", detail, { retryAfterSeconds: 1, cause });
}

/** Error for a request that may have been done, or may still be done: the caller must check before a retry. */
export function outcomeUnknown(detail: string, extras: Pick<ErrorExtras, "txId"> & ErrorOptions = {}): FencepostError {
  return new FencepostError("UNAVAILABLE", detail, { outcome: "unknown", retryAfterSeconds: 1, ...extras });
}

/**
 * Error for a create that names a nonce other than the next one. The text is geth's, because clients search for it.
 * Nothing was done.
 */
export function otherNonce(asked: number | undefined, next: number | null): FencepostError {
  if (next === null) return unavailable("this signer's nonce is not known yet; nothing was accepted");
  const which = asked !== undefined && asked > next ? "high" : "low";
  const detail = `nonce too ${which}: next nonce ${next}, tx nonce ${asked}`;
  return new FencepostError("CONFLICT", detail, { nextNonce: next });
}

/**
 * Error for a request to a lane that another node owns; `ownerUrl`: that node's URL, if known. Nothing was done here.
 */
export function notLeader(detail: string, ownerUrl: string | null = null): FencepostError {
  return new FencepostError("NOT_LEADER", detail, { ownerUrl, retryAfterSeconds: 1 });
}

export function queueFull(): FencepostError {
  const detail = "too many creates are waiting; nothing was accepted";
  return new FencepostError("QUEUE_FULL", detail, { retryAfterSeconds: 1 });
}

/**
 * Error for a database that did not answer in time, or reported that it lacks a resource. The two have different
 * messages, because if there is no answer, this process itself may have stalled.
 */
export class DatabaseSilent extends FencepostError {
  private readonly consequence: string;

  /** `consequence`: what the failure means for the request. */
  constructor(consequence: string | null, cause?: unknown) {
    const then = consequence === null ? "" : `; ${consequence}`;
    // The resource that the database lacks, as a store error reports it: disk space, for example.
    const { lacks = null } = Object(cause) as { lacks?: string | null };
    const why = lacks === null ? "the database does not answer" : `the database cannot do it: ${lacks}`;
    super("UNAVAILABLE", `${why}${then}`, { retryAfterSeconds: 1, cause });
    this.consequence = then;
  }

  afterPause(pausedMs: number): FencepostError {
    const detail = `this node was not scheduled for ${pausedMs} ms and did not get the answer of the database in time`;
    return unavailable(`${detail}${this.consequence}`, this.cause);
  }
}

/** Converts a database failure into a 503 for the caller, instead of an internal error. */
export async function orDatabaseSilent<T>(work: Promise<T>, consequence: string | null): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof FencepostError ? error : new DatabaseSilent(consequence, error);
  }
}
