import { unsupported } from "./send-error.ts";
import type { Intent, Payload } from "./source.ts";

/** The parameter of `eth_sendTransaction`, as wallet libraries fill it in. */
export type RpcTransaction = Readonly<Record<string, unknown>>;

const TYPES: Readonly<Record<string, NonNullable<Payload["type"]>>> = {
  "0x0": "legacy",
  "0x1": "eip2930",
  "0x2": "eip1559",
};
const QUANTITIES = ["value", "gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"] as const;
const KNOWN = new Set(["from", "to", "data", "input", "chainId", "type", "accessList", "nonce", ...QUANTITIES]);

/** Nothing that a caller says is left out in silence: what Fencepost cannot do is refused. */
export function intentOf(given: RpcTransaction, requestId: string, allowNoCode = false): Intent {
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== null));
  const unknown = Object.keys(said).filter((name) => !KNOWN.has(name));
  if (unknown.length > 0) throw unsupported(`Fencepost sends no transactions with ${unknown.join(", ")}`);
  if (typeof said.from !== "string") throw unsupported("a transaction needs the account that it is from");
  const chain = said.chainId === undefined ? {} : { chainId: Number(said.chainId) };
  const nonce = said.nonce === undefined ? {} : { nonce: nonceOf(said.nonce) };
  const allowed = allowNoCode ? { allowNoCode } : {};
  return { ...chain, signer: said.from, requestId, ...nonce, ...allowed, payload: payloadOf(said) };
}

function payloadOf(said: RpcTransaction): Payload {
  const priced = {
    ...Object.fromEntries(QUANTITIES.filter((name) => name in said).map((name) => [name, String(said[name])])),
    ...(said.accessList === undefined ? {} : { accessList: said.accessList as NonNullable<Payload["accessList"]> }),
    ...(said.type === undefined ? {} : { type: typeOf(said.type) }),
  };
  const data = dataOf(said);
  if (said.to !== undefined) return { to: String(said.to), ...(data === undefined ? {} : { data }), ...priced };
  if (data === undefined) throw unsupported("a transaction needs a receiver, or the code of a contract to deploy");
  return { bytecode: data, ...priced };
}

/** It is some callers' only guard against a double: honoured exactly, or refused. */
function nonceOf(value: unknown): number {
  const nonce = Number(value);
  if (!Number.isSafeInteger(nonce) || nonce < 0) throw unsupported(`${String(value)} is no nonce`);
  return nonce;
}

function dataOf({ data, input }: RpcTransaction): string | undefined {
  if (data !== undefined && input !== undefined && data !== input) throw unsupported("data and input differ");
  const given = data ?? input;
  return given === undefined ? undefined : String(given);
}

function typeOf(type: unknown): NonNullable<Payload["type"]> {
  const known = TYPES[String(type)];
  if (known === undefined) throw unsupported(`Fencepost sends no transactions of type ${String(type)}`);
  return known;
}
