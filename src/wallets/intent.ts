import { unsupported } from "./send-error.ts";
import type { Hex, Intent, Payload } from "./source.ts";

/** The parameter of `eth_sendTransaction`, as wallet libraries fill it in. */
export type RpcTransaction = Readonly<Record<string, unknown>>;

const TYPES: Readonly<Record<string, NonNullable<Payload["type"]>>> = {
  "0x0": "legacy",
  "0x1": "eip2930",
  "0x2": "eip1559",
};
const QUANTITIES = ["value", "gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"] as const;
const KNOWN = new Set(["from", "to", "data", "input", "chainId", "type", "accessList", "nonce", ...QUANTITIES]);

/**
 * Converts a transaction in JSON-RPC form to a create request. Fields that Fencepost does not support are refused,
 * never ignored. Addresses and bytes are passed on unchecked: the node checks them.
 */
export function intentOf(given: RpcTransaction, requestId: string, allowNoCode = false): Intent {
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== null));
  const unknown = Object.keys(fields).filter((name) => !KNOWN.has(name));
  if (unknown.length > 0) throw unsupported(`Fencepost sends no transactions with ${unknown.join(", ")}`);
  if (typeof fields.from !== "string") throw unsupported("a transaction needs the account that it is from");
  const chain = fields.chainId === undefined ? {} : { chainId: Number(fields.chainId) };
  const nonce = fields.nonce === undefined ? {} : { nonce: nonceOf(fields.nonce) };
  const allowed = allowNoCode ? { allowNoCode } : {};
  return { ...chain, signer: fields.from as Hex, requestId, ...nonce, ...allowed, payload: payloadOf(fields) };
}

function payloadOf(fields: RpcTransaction): Payload {
  const priced = {
    ...Object.fromEntries(QUANTITIES.filter((name) => name in fields).map((name) => [name, String(fields[name])])),
    ...(fields.accessList === undefined ? {} : { accessList: fields.accessList as NonNullable<Payload["accessList"]> }),
    ...(fields.type === undefined ? {} : { type: typeOf(fields.type) }),
  };
  const data = dataOf(fields);
  if (fields.to !== undefined)
    return { to: String(fields.to) as Hex, ...(data === undefined ? {} : { data }), ...priced };
  if (data === undefined) throw unsupported("a transaction needs a receiver, or the code of a contract to deploy");
  return { bytecode: data, ...priced };
}

/**
 * Parses the nonce. A transaction gets exactly this nonce or is refused: for some callers it is the only protection
 * against sending twice.
 */
function nonceOf(value: unknown): number {
  const nonce = Number(value);
  if (!Number.isSafeInteger(nonce) || nonce < 0) throw unsupported(`${String(value)} is no nonce`);
  return nonce;
}

function dataOf({ data, input }: RpcTransaction): Hex | undefined {
  if (data !== undefined && input !== undefined && data !== input) throw unsupported("data and input differ");
  const given = data ?? input;
  return given === undefined ? undefined : (String(given) as Hex);
}

function typeOf(type: unknown): NonNullable<Payload["type"]> {
  const known = TYPES[String(type)];
  if (known === undefined) throw unsupported(`Fencepost sends no transactions of type ${String(type)}`);
  return known;
}
