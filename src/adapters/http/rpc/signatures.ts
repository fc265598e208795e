/**
 * JSON-RPC calls that sign messages: `personal_sign` and `eth_signTypedData_v4`. They are requests like POST /sign, with
 * the same rules. Other methods that sign are refused with a reason.
 */
import type { SignMessageRequest } from "../../../application/api.ts";
import type { SignedMessage } from "../../../application/operations/messages.ts";
import { SIGN } from "../../../contract/calls/call.ts";
import { defined } from "../../../domain/defined.ts";
import { FencepostError, invalid } from "../../../domain/errors.ts";
import { authorise } from "../exchange/auth.ts";
import { REJECTED, readFailure } from "./error-codes.ts";
import { fewAtATime } from "./few-at-a-time.ts";
import { type Answer, listOf, RpcFailure, type RpcItem, type RpcOutcome, result } from "./packet.ts";
import { inTime, leftMs, type RpcContext, requestIdOf } from "./rpc-context.ts";

type Place = "params.0" | "params.1";

interface Read {
  readonly request: SignMessageRequest;
  /** Place of each part in the call, for error messages. */
  readonly signerAt: Place;
  readonly contentAt: Place;
}

const READERS: Readonly<Record<string, (params: readonly unknown[]) => Read>> = {
  personal_sign: personal,
  eth_signTypedData_v4: typedData,
};

export const SIGNATURES: ReadonlySet<string> = new Set(Object.keys(READERS));

/** Why methods that sign are not served. */
const NEVER: Readonly<Record<string, string>> = {
  eth_sign: "it signs bytes that no policy can judge; use personal_sign or eth_signTypedData_v4",
  eth_signTransaction: "transactions are signed when they are sent; use eth_sendTransaction",
  eth_signTypedData: "its format is not the same everywhere; use eth_signTypedData_v4",
  eth_signTypedData_v1: "its format is not that of EIP-712; use eth_signTypedData_v4",
  eth_signTypedData_v3: "it knows no arrays; use eth_signTypedData_v4",
  eth_signAuthorization: "an authorisation (EIP-7702) hands the account over, so none is signed",
  wallet_signAuthorization: "an authorisation (EIP-7702) hands the account over, so none is signed",
};

/** Reason why a method that signs is not served; null for any other method. */
export function whyNever(method: string): string | null {
  return Object.hasOwn(NEVER, method) ? (NEVER[method] as string) : null;
}

/** Number of signatures of one packet that are made at once. */
const AT_ONCE = 16;

/** Answers the signatures of one JSON-RPC packet (a call or a batch). */
export function answerSignatures(context: RpcContext, items: readonly RpcItem[], answer: Answer): Promise<void> {
  return fewAtATime(items, AT_ONCE, async (item) => answer(item, await signatureOf(context, item)));
}

async function signatureOf(context: RpcContext, item: RpcItem): Promise<RpcOutcome> {
  let read: Read | null = null;
  try {
    authorise(context.principal, SIGN);
    if (leftMs(context) <= 0) return late(null);
    read = READERS[item.method]?.(listOf(item.params)) ?? null;
    if (read === null) throw new Error(`the method ${item.method} signs no message`);
    const requestId = read.request.requestId ?? requestIdOf(context, item) ?? undefined;
    const request = defined({ ...read.request, chainId: context.chainId, requestId });
    return await inTime(context, context.api.requestSignature(request).then(outcomeOf), () => late(requestId));
  } catch (error) {
    if (error instanceof FencepostError) context.onRefused(error);
    return readFailure(error instanceof FencepostError && read !== null ? inCall(error, read) : error, context.mask);
  }
}

function outcomeOf({ signature, state, signatureId, requestId, expiresAt }: SignedMessage): RpcOutcome {
  if (signature !== null) return result(signature);
  const until = expiresAt === null ? "" : ` until ${expiresAt}`;
  const message = `it is ${state}${until}: call it again with the request id ${requestId} once it is approved`;
  return new RpcFailure(REJECTED, message, { signatureId, requestId, outcome: "accepted" });
}

/** Response if the outcome is unknown. A repeat under the same request id is the same signature. */
function late(requestId: unknown): RpcFailure {
  const how = typeof requestId === "string" ? `call it again with the request id ${requestId}` : "call it again";
  return new RpcFailure(REJECTED, `no signature in time: it may have been counted; ${how}`, { outcome: "unknown" });
}

const ADDRESS = /^0x[0-9a-f]{40}$/i;

/**
 * Reads `personal_sign`. The message comes first; if only the first parameter is an address, the two are swapped, as in
 * early wallets. Text without 0x is signed as UTF-8.
 */
function personal(params: readonly unknown[]): Read {
  const [first, second, third, ...more] = params;
  const isSwapped = isAddress(first) && !isAddress(second);
  const [content, signer] = isSwapped ? [second, first] : [first, second];
  const [signerAt, contentAt] = isSwapped ? (["params.0", "params.1"] as const) : (["params.1", "params.0"] as const);
  if (!isAddress(signer)) throw invalid(signerAt, "must be the address of the signer");
  if (typeof content !== "string") throw invalid(contentAt, "must be the message: 0x hex, or text");
  const isHex = /^0x/i.test(content);
  const message = isHex ? { raw: content } : content;
  return { request: { signer, message, ...optionsIn(third, more) }, signerAt, contentAt };
}

/** Reads `eth_signTypedData_v4`: the signer, and the typed data as JSON text or as an object. */
function typedData(params: readonly unknown[]): Read {
  const [signer, content, third, ...more] = params;
  const [signerAt, contentAt] = ["params.0", "params.1"] as const;
  if (!isAddress(signer)) throw invalid(signerAt, "must be the address of the signer");
  const data = typeof content === "string" ? parsed(content, contentAt) : content;
  if (typeof data !== "object" || data === null || Array.isArray(data))
    throw invalid(contentAt, "must be typed data: an object, or its JSON text");
  return { request: { signer, typedData: data, ...optionsIn(third, more) }, signerAt, contentAt };
}

const isAddress = (value: unknown): value is string => typeof value === "string" && ADDRESS.test(value);

function parsed(text: string, path: Place): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(path, "is not JSON");
  }
}

/** Reads the last parameter: nothing, or `{ fencepostRequestId }`. Wallets take a password there, which is not needed. */
function optionsIn(given: unknown, more: readonly unknown[]): Pick<SignMessageRequest, "requestId"> {
  if (more.length > 0) throw invalid("params.3", "is not allowed");
  if (given === undefined || given === null || given === "") return {};
  if (typeof given !== "object" || Array.isArray(given))
    throw invalid("params.2", "must be left out: no password is needed; an object may hold a fencepostRequestId");
  const { fencepostRequestId: requestId, ...others } = given as Readonly<Record<string, unknown>>;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw invalid(`params.2.${unknown.slice(0, 100)}`, "is not a known field");
  return requestId === undefined ? {} : { requestId };
}

/** Rewrites the field path of an error to the field's place in the JSON-RPC call. */
function inCall(error: FencepostError, { signerAt, contentAt }: Read): FencepostError {
  const { path } = error.extras;
  if (error.code !== "INVALID_REQUEST" || path === undefined || path.startsWith("params")) return error;
  const [first = "", ...rest] = path.split(".");
  const places: Readonly<Record<string, string>> = {
    signer: signerAt,
    requestId: "params.2.fencepostRequestId",
    message: contentAt,
    typedData: contentAt,
  };
  const deeper = first === "typedData" ? rest : [];
  const place = [places[first] ?? path, ...deeper].join(".");
  const detail = error.message.startsWith(`${path}: `) ? error.message.slice(path.length + 2) : error.message;
  return invalid(place, detail);
}
