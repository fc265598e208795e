/** Converts the transaction object of `eth_sendTransaction` to a create request. */
import type { CreateRequest } from "../../../application/api.ts";
import { type FencepostError, invalid } from "../../../domain/errors.ts";
import { unknownName } from "../../../domain/text/near-names.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface TransactionContext {
  readonly chainId: number;
  /** Request id of a header; null: none. */
  readonly requestId: string | null;
  /** Ignores the object's nonce. */
  readonly ignoresNonce: boolean;
  /** Accepts call data to an address without code, for clients that cannot set allowNoCode. */
  readonly allowsNoCode: boolean;
}

/** Fields copied unchanged, each a quantity in hex. */
const QUANTITIES = ["value", "gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"] as const;
const STANDARD = ["from", "to", "data", "input", "accessList", "type", "nonce", "chainId"];
const KNOWN: readonly string[] = [...QUANTITIES, ...STANDARD, "fencepostRequestId", "allowNoCode"];

/** Fields of transaction types that only callers can sign. */
const OF_OTHER_TYPES: Readonly<Record<string, string>> = {
  blobs: "EIP-4844",
  blobVersionedHashes: "EIP-4844",
  maxFeePerBlobGas: "EIP-4844",
  sidecars: "EIP-4844",
  commitments: "EIP-4844",
  proofs: "EIP-4844",
  authorizationList: "EIP-7702",
};
const OTHER_TYPES: Readonly<Record<number, string>> = { 3: "EIP-4844", 4: "EIP-7702" };

/**
 * Throws INVALID_REQUEST with the path below `params`. Unknown fields are refused, not ignored: they may be about
 * money.
 */
export function readTransaction(params: unknown, context: TransactionContext): CreateRequest {
  const [given, ...more] = Array.isArray(params) ? params : [];
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw invalid("params.0", "must be a transaction object");
  }
  if (more.length > 0) throw invalid("params.1", "is not allowed: eth_sendTransaction takes one parameter");
  const fields = Object.fromEntries(Object.entries(given as Fields).filter(([, value]) => value !== null));
  refuseUnknown(fields);
  if (fields.from === undefined) throw invalid("params.0.from", "is required: the signer that sends it");
  refuseOtherChain(fields.chainId, context.chainId);
  const { nonce } = fields;
  return {
    chainId: context.chainId,
    signer: fields.from,
    payload: payloadOf(fields),
    ...requestIdOf(fields.fencepostRequestId, context.requestId),
    ...noCodeOf(fields.allowNoCode, context.allowsNoCode),
    ...(nonce === undefined || context.ignoresNonce ? {} : { nonce: quantity(nonce, "nonce") }),
  };
}

function refuseUnknown(fields: Fields): void {
  for (const name of Object.keys(fields)) {
    const other = OF_OTHER_TYPES[name];
    if (other !== undefined) throw otherType(name, other);
    if (KNOWN.includes(name)) continue;
    const path = `params.0.${name.slice(0, 100)}`;
    throw unknownName({ name, path, known: KNOWN, complaint: "is not a known field" });
  }
}

function otherType(name: string, type: string): FencepostError {
  const detail = `belongs to ${type}, which is not signed here: sign it yourself, and send it with eth_sendRawTransaction`;
  return invalid(`params.0.${name}`, detail);
}

function payloadOf(fields: Fields): Fields {
  const data = dataOf(fields);
  const quantities = QUANTITIES.flatMap((name) => {
    return fields[name] === undefined ? [] : [[name, quantity(fields[name], name)] as const];
  });
  const { accessList } = fields;
  const rest = {
    ...Object.fromEntries(quantities),
    ...(accessList === undefined ? {} : { accessList }),
    ...(fields.type === undefined ? {} : { type: typeOf(fields.type) }),
  };
  if (fields.to !== undefined) return { to: fields.to, ...(data === undefined ? {} : { data }), ...rest };
  if (data === undefined || data === "0x") {
    throw invalid("params.0.to", "is required, unless data deploys a contract");
  }
  return { bytecode: data, ...rest };
}

/** Newer clients name it `input`, older ones `data`; some send both. */
function dataOf({ data, input }: Fields): unknown {
  if (data !== undefined && input !== undefined && String(data).toLowerCase() !== String(input).toLowerCase()) {
    throw invalid("params.0.input", "differs from data; give one of them, or both alike");
  }
  return input ?? data;
}

/** Only hex: "10" could be ten or sixteen. */
function quantity(value: unknown, name: string): string {
  if (typeof value === "string" && /^0x[0-9a-fA-F]{1,64}$/.test(value)) return value;
  throw invalid(`params.0.${name}`, "must be a quantity in 0x hex");
}

function typeOf(value: unknown): number {
  const type = Number(quantity(value, "type"));
  const other = OTHER_TYPES[type];
  if (other !== undefined) throw otherType("type", other);
  if (type > 2) throw invalid("params.0.type", "must be 0x0, 0x1 or 0x2");
  return type;
}

function refuseOtherChain(value: unknown, chainId: number): void {
  if (value === undefined) return;
  const named = typeof value === "number" ? value : Number(quantity(value, "chainId"));
  if (named !== chainId) throw invalid("params.0.chainId", `is ${named}, and this endpoint is for chain ${chainId}`);
}

function requestIdOf(own: unknown, header: string | null): { readonly requestId?: unknown } {
  if (own === undefined) return header === null ? {} : { requestId: header };
  // The transaction's own id takes precedence over the packet's header.
  return { requestId: own };
}

function noCodeOf(own: unknown, byQuery: boolean): { readonly allowNoCode?: unknown } {
  if (own !== undefined) return { allowNoCode: own };
  return byQuery ? { allowNoCode: true } : {};
}

/** Translates a field's path to its place in the call. */
export function inParams(error: FencepostError): FencepostError {
  const { path } = error.extras;
  if (error.code !== "INVALID_REQUEST" || path === undefined || path.startsWith("params")) return error;
  const place = `params.0.${NAMES.get(path) ?? path.replace(/^payload\./, "")}`;
  const detail = error.message.startsWith(`${path}: `) ? error.message.slice(path.length + 2) : error.message;
  return invalid(place, detail);
}

const NAMES = new Map([
  ["signer", "from"],
  ["requestId", "fencepostRequestId"],
  ["payload.bytecode", "data"],
]);
