/**
 * Errors in the codes that wallets and libraries know (JSON-RPC 2.0, EIP-1474, EIP-1193), and in geth's words where they look
 * for those. A send has rules of its own, because clients repeat one by themselves: viem after -32603 and -32005, and
 * after -32000 as `wallet_sendTransaction`. So once it may have been accepted it is answered with none of these, but with
 * -32003 and what it is called here.
 */
import { FencepostError } from "../../../domain/errors.ts";
import type { Mask } from "../../../domain/mask.ts";
import { RpcFailure } from "./packet.ts";

export const NO_SUCH_METHOD = -32601;
const INVALID_PARAMS = -32602;
/** EIP-1474: requested resource not available. Clients do not repeat it by themselves. */
export const UNAVAILABLE = -32002;
/** EIP-1474: transaction rejected. The one code of a send that was accepted and has no hash yet. */
export const REJECTED = -32003;
/** EIP-1474: too much at once. Repeated by clients: only where nothing was consumed. */
const LIMIT_EXCEEDED = -32005;
/** geth: `data` is what the call reverted with. */
const REVERTED = 3;
/** EIP-1193: this method or account is not for the caller. */
export const UNAUTHORIZED = 4100;
/** EIP-1193: not connected to that chain. */
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

/** Rules of the key itself; every other rule is a policy's. */
const OF_THE_KEY = /^(signers|chains|scope:\w+)$/;

/** How geth begins what it says of these: clients tell the reasons apart by that. */
const GETH_WORDS: Readonly<Record<string, string>> = {
  INSUFFICIENT_FUNDS: "insufficient funds for gas * price + value",
  GAS_TOO_LOW: "intrinsic gas too low",
  GAS_OVER_BLOCK: "exceeds block gas limit",
};

export function failureOf(error: FencepostError, mask: Mask): RpcFailure {
  const { code, extras } = error;
  const { revert, path, ...told } = extras;
  const message = mask(error.message);
  if (code === "SUBMISSION_REJECTED" && extras.reason === "REVERT" && revert !== undefined) {
    const said = revert.message === null ? "" : `: ${mask(revert.message)}`;
    return new RpcFailure(REVERTED, `execution reverted${said}`, revert.data);
  }
  const data = { code, ...told, ...(path === undefined ? {} : { path: mask(path) }) };
  return new RpcFailure(codeOf(error), inGethWords(error, message), data);
}

function codeOf({ code, extras }: FencepostError): number {
  if (code === "FORBIDDEN" && OF_THE_KEY.test(extras.rule ?? "")) return UNAUTHORIZED;
  if (extras.outcome === "unknown") return REJECTED;
  return CODES[code];
}

function inGethWords({ extras: { reason } }: FencepostError, message: string): string {
  const words = GETH_WORDS[reason ?? ""];
  return words === undefined ? message : `${words}: ${message}`;
}

/** What a read failed with. */
export function readFailure(error: unknown, mask: Mask): RpcFailure {
  if (error instanceof FencepostError) return failureOf(error, mask);
  return new RpcFailure(CODES.INTERNAL, "something unforeseen happened; the node's log says what");
}

/** What a send failed with, which may have been accepted all the same where that cannot be told. */
export function sendFailure(error: unknown, txId: string, mask: Mask): RpcFailure {
  if (!(error instanceof FencepostError) || error.code === "INTERNAL") return maybeAccepted(txId);
  return error.extras.outcome === "unknown" ? maybeAccepted(error.extras.txId ?? txId) : failureOf(error, mask);
}

export function maybeAccepted(txId: string): RpcFailure {
  const message =
    "it may have been accepted, or be accepted yet: ask fencepost_getTransaction for data.txId before sending it again";
  return new RpcFailure(REJECTED, message, { txId, outcome: "unknown" });
}

export function acceptedUnsigned(txId: string, why: string): RpcFailure {
  const message = `accepted, not signed yet: ${why}. Do not send it again: fencepost_getTransaction(data.txId) tells its hash`;
  return new RpcFailure(REJECTED, message, { txId, outcome: "accepted" });
}
