/** JSON-RPC 2.0 types shared by the embedded chain's server and engine. */

export type Answer = { readonly result: unknown } | { readonly error: RpcFault };

export interface RpcFault {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export type Handle = (method: string, params: unknown) => Promise<Answer>;

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
/** Error code with which nodes report every failure of a transaction or call other than a revert. */
export const EXECUTION_ERROR = -32000;
export const REVERTED = 3;

export class ChainRpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(method: string, fault: RpcFault) {
    super(`${method}: ${fault.message}`);
    this.name = "ChainRpcError";
    this.code = fault.code;
    this.data = fault.data;
  }
}

export function fieldOf(object: unknown, name: string): unknown {
  return typeof object === "object" && object !== null ? (object as Record<string, unknown>)[name] : undefined;
}

export function fault(code: number, message: string): Answer {
  return { error: { code, message } };
}

/** Calls a chain over HTTP. */
export async function callChain(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  return resultOf(method, (await response.json()) as Answer);
}

export function resultOf(method: string, answer: Answer): unknown {
  if ("error" in answer) throw new ChainRpcError(method, answer.error);
  return answer.result;
}
