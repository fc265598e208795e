/** Converts the transaction object of `eth_sendTransaction` to a create request. */
import type { CreateRequest } from "../../../application/api.ts";
import { defined } from "../../../domain/defined.ts";
import { type FencepostError, invalid } from "../../../domain/errors.ts";
import { unknownName } from "../../../domain/text/near-names.ts";
import { listOf } from "./packet.ts";
import type { RpcContext } from "./rpc-context.ts";

type Fields = Readonly<Record<string, unknown>>;

type TransactionContext = Pick<RpcContext, "chainId" | "requestId" | "ignoresNonce" | "allowsNoCode">;

/** Fields of a transaction object that are copied unchanged; each is a quantity in hex. */
const QUANTITIES = ["value", "gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"] as const;
const STANDARD = ["from", "to", "data", "input", "accessList", "type", "nonce", "chainId"];
const KNOWN: readonly string[] = [...QUANTITIES, ...STANDARD, "fencepostRequestId", "allowNoCode"];

const BLOBS = ["blobs", "blobVersionedHashes", "maxFeePerBlobGas", "sidecars", "commitments", "proofs"];
/** Transaction types that only callers can sign, with their fields. */
const OTHER_TYPES = [
  { type: 3, name: "EIP-4844", fields: BLOBS },
  { type: 4, name: "EIP-7702", fields: ["authorizationList"] },
];

/**
 * Reads a transaction object. Throws INVALID_REQUEST with the path below `params`. Unknown fields are refused, not
 * ignored, because they may affect money.
 */
export function readTransaction(params: unknown, context: TransactionContext): CreateRequest {
  const [given, ...more] = listOf(params);
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw invalid("params.0", "must be a transaction object");
  }
  if (more.length > 0) throw invalid("params.1", "is not allowed: eth_sendTransaction takes one parameter");
  const fields = Object.fromEntries(Object.entries(given as Fields).filter(([, value]) => value !== null));
  refuseUnknown(fields);
  if (fields.from === undefined) throw invalid("params.0.from", "is required: the address of the signer");
  refuseOtherChain(fields, context.chainId);
  return defined({
    chainId: context.chainId,
    signer: fields.from,
    payload: payloadOf(fields),
    // The request id in the transaction object takes precedence over the one in the HTTP header.
    requestId: fields.fencepostRequestId ?? context.requestId ?? undefined,
    allowNoCode: fields.allowNoCode ?? (context.allowsNoCode || undefined),
    nonce: context.ignoresNonce ? undefined : quantityIn(fields, "nonce"),
  });
}

function refuseUnknown(fields: Fields) {
  for (const name of Object.keys(fields)) {
    const other = OTHER_TYPES.find(({ fields }) => fields.includes(name));
    if (other !== undefined) throw otherType(name, other.name);
    if (KNOWN.includes(name)) continue;
    const path = `params.0.${name.slice(0, 100)}`;
    throw unknownName({ name, path, known: KNOWN, complaint: "is not a known field" });
  }
}

function otherType(name: string, type: string) {
  const detail = `belongs to ${type}, which is not signed here: sign it yourself, and send it with eth_sendRawTransaction`;
  return invalid(`params.0.${name}`, detail);
}

function payloadOf(fields: Fields): Fields {
  const data = dataOf(fields);
  const quantities = Object.fromEntries(QUANTITIES.map((name) => [name, quantityIn(fields, name)]));
  const { to, accessList } = fields;
  const rest = { ...quantities, accessList, type: typeIn(fields) };
  if (to !== undefined) return defined({ to, data, ...rest });
  if (data === undefined || data === "0x") {
    throw invalid("params.0.to", "is required, unless data deploys a contract");
  }
  return defined({ bytecode: data, ...rest });
}

/** Reads the call data. Newer clients name it `input`, older ones `data`; some send both. */
function dataOf({ data, input }: Fields) {
  if (data !== undefined && input !== undefined && String(data).toLowerCase() !== String(input).toLowerCase()) {
    throw invalid("params.0.input", "differs from data; give only one of them, or the same value in both");
  }
  return input ?? data;
}

/** Reads a quantity. Only hex is accepted, because "10" could be ten or sixteen. */
function quantityIn(fields: Fields, name: string) {
  const value = fields[name];
  if (value === undefined || (typeof value === "string" && /^0x[0-9a-fA-F]{1,64}$/.test(value))) return value;
  throw invalid(`params.0.${name}`, "must be a quantity in 0x hex");
}

function typeIn(fields: Fields) {
  const given = quantityIn(fields, "type");
  if (given === undefined) return undefined;
  const type = Number(given);
  const other = OTHER_TYPES.find((each) => each.type === type);
  if (other !== undefined) throw otherType("type", other.name);
  if (type > 2) throw invalid("params.0.type", "must be 0x0, 0x1 or 0x2");
  return type;
}

function refuseOtherChain(fields: Fields, chainId: number) {
  const named = Number(
    (typeof fields.chainId === "number" ? fields.chainId : quantityIn(fields, "chainId")) ?? chainId,
  );
  if (named !== chainId) throw invalid("params.0.chainId", `is ${named}, but this endpoint is for chain ${chainId}`);
}

/** Rewrites the field path of an error to the field's place in the JSON-RPC call. */
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
