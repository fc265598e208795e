/**
 * JSON-RPC error codes that wallets and libraries know (JSON-RPC 2.0, EIP-1474, EIP-1193), with geth's texts if clients
 * look for them. Sends are special, because clients repeat them by themselves after some codes: viem after -32603 and
 * -32005, and after -32000 for `wallet_sendTransaction`. So a send that may have been accepted is answered with -32003
 * and its id, never with one of these three codes.
 */
import { FencepostError } from "../../../domain/errors.ts";
import type { Mask } from "../../../domain/text/mask.ts";
import { RpcFailure } from "./packet.ts";

export const NO_SUCH_METHOD = -32601;
export const INVALID_PARAMS = -32602;
/** EIP-1474: resource unavailable. Clients do not repeat it by themselves. */
export const UNAVAILABLE = -32002;
/** EIP-1474: transaction rejected. Also the only code used for a send that was accepted and has no hash yet. */
export const REJECTED = -32003;
/** EIP-1474: limit exceeded. Clients repeat it, so it is only for requests without any effect. */
export const LIMIT_EXCEEDED = -32005;
/** Code that geth uses for a reverted call; `data` is the revert data. */
const REVERTED = 3;
/** EIP-1193: the caller may not use this method or account. */
export const UNAUTHORIZED = 4100;
/** EIP-1193: not connected to the requested chain. */
const CHAIN_DISCONNECTED = 4901;

const CODES: Readonly<Record<FencepostError["code"], number>> = {
  INVALID_REQUEST: INVALID_PARAMS,
  PAYLOAD_TOO_LARGE: INVALID_PARAMS,
  UNAUTHENTICATED: UNAUTHORIZED,
  FORBIDDEN: REJECTED,
  UNKNOWN_SIGNER: UNAUTHORIZED,
  UNKNOWN_CHAIN: CHAIN_DISCONNECTED,
  NOT_FOUND: INVALID_PARAMS,
  METHOD_NOT_ALLOWED: NO_SUCH_METHOD,
  REQUEST_ID_REUSED: REJECTED,
  CONFLICT: REJECTED,
  EPOCH_CHANGED: REJECTED,
  FEED_TRUNCATED: REJECTED,
  SUBMISSION_REJECTED: REJECTED,
  QUEUE_FULL: LIMIT_EXCEEDED,
  QUOTA_EXCEEDED: LIMIT_EXCEEDED,
  NOT_LEADER: UNAVAILABLE,
  UNAVAILABLE,
  INTERNAL: -32603,
};

/** Matches the rules of the API key itself; all other rules belong to a policy. */
const OF_THE_KEY = /^(signers|chains|scope:\w+)$/;

/** Prefixes of geth's messages, by which clients recognise the reason. */
const GETH_PREFIXES: Readonly<Record<string, string>> = {
  INSUFFICIENT_FUNDS: "insufficient funds for gas * price + value",
  GAS_TOO_LOW: "intrinsic gas too low",
  GAS_OVER_BLOCK: "exceeds block gas limit",
};

export function failureOf(error: FencepostError, mask: Mask): RpcFailure {
  const { code, extras } = error;
  const { revert, path, ...members } = extras;
  const prefix = GETH_PREFIXES[extras.reason ?? ""];
  const message = prefix === undefined ? mask(error.message) : `${prefix}: ${mask(error.message)}`;
  if (code === "SUBMISSION_REJECTED" && extras.reason === "REVERT" && revert !== undefined) {
    const text = revert.message === null ? "" : `: ${mask(revert.message)}`;
    return new RpcFailure(REVERTED, `execution reverted${text}`, revert.data);
  }
  const data = { code, ...members, ...(path !== undefined && { path: mask(path) }) };
  return new RpcFailure(codeOf(error), message, data);
}

function codeOf({ code, extras }: FencepostError) {
  if (code === "FORBIDDEN" && OF_THE_KEY.test(extras.rule ?? "")) return UNAUTHORIZED;
  if (extras.outcome === "unknown") return REJECTED;
  return CODES[code];
}

/** Converts an error of a read to a JSON-RPC error. */
export function readFailure(error: unknown, mask: Mask): RpcFailure {
  if (error instanceof FencepostError) return failureOf(error, mask);
  return new RpcFailure(CODES.INTERNAL, "an unexpected error occurred; see the node's log");
}

/** Converts an error of a send to a JSON-RPC error. If the outcome is unknown, the send may have been accepted. */
export function sendFailure(error: unknown, txId: string, mask: Mask): RpcFailure {
  if (!(error instanceof FencepostError) || error.code === "INTERNAL") return maybeAccepted(txId);
  return error.extras.outcome === "unknown" ? maybeAccepted(error.extras.txId ?? txId) : failureOf(error, mask);
}

export function maybeAccepted(txId: string): RpcFailure {
  const message =
    "it may have been accepted, or may still be: call fencepost_getTransaction(data.txId) before sending it again";
  return new RpcFailure(REJECTED, message, { txId, outcome: "unknown" });
}

export function acceptedUnsigned(txId: string, why: string): RpcFailure {
  const message = `accepted, not signed yet: ${why}. Do not send it again: fencepost_getTransaction(data.txId) returns its hash`;
  return new RpcFailure(REJECTED, message, { txId, outcome: "accepted" });
}
