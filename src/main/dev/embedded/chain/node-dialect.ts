import { type Answer, fieldOf, type Handle, INVALID_PARAMS, REVERTED } from "./json-rpc.ts";

/**
 * Translates responses of EDR, which imitates Hardhat, to those of common nodes. Only differences that clients depend
 * on are translated.
 */
export function answerLikeNodes(edr: Handle): Handle {
  return async (method, params) => {
    if (method === "eth_getBlockReceipts") return blockReceipts(edr, params);
    const answer = await edr(method, CALLS.has(method) ? withoutDuplicateData(params) : params);
    return method === "eth_sendRawTransaction" ? translateUndecodable(answer) : translateRevert(answer);
  };
}

const CALLS: ReadonlySet<string> = new Set(["eth_call", "eth_estimateGas", "eth_createAccessList"]);

/** Removes `data` if it equals `input`: cast sends both and nodes accept them, but EDR refuses the duplicate field. */
function withoutDuplicateData(params: unknown) {
  if (!Array.isArray(params)) return params;
  const [call, ...rest] = params as readonly unknown[];
  const input = fieldOf(call, "input");
  if (input === undefined || input !== fieldOf(call, "data")) return params;
  const { data: _, ...once } = call as Readonly<Record<string, unknown>>;
  return [once, ...rest];
}

/**
 * Translates a revert. geth, reth and anvil report it as code 3 with the return data as hex, which libraries decode.
 * EDR wraps the data: `{ code: -32000, data: { reason: { Revert: "0x…" }, data: "0x…" } }`.
 */
function translateRevert(answer: Answer): Answer {
  if (!("error" in answer)) return answer;
  const { data: wrapped } = answer.error;
  const data = fieldOf(wrapped, "data");
  if (fieldOf(fieldOf(wrapped, "reason"), "Revert") === undefined || typeof data !== "string") return answer;
  const reason = /reverted with reason string '(.*)'$/s.exec(answer.error.message)?.[1];
  return { error: { code: REVERTED, message: `execution reverted${reason === undefined ? "" : `: ${reason}`}`, data } };
}

/**
 * Translates the error for bytes that cannot be decoded. EDR returns only the name of the decoding error ("overflow"),
 * in lower case; its other messages are sentences.
 */
function translateUndecodable(answer: Answer) {
  if (!("error" in answer) || answer.error.code !== INVALID_PARAMS || !/^[a-z]/.test(answer.error.message))
    return answer;
  return { error: { ...answer.error, message: `failed to decode signed transaction: ${answer.error.message}` } };
}

/** Receipts of a block, read one transaction at a time, because EDR has no eth_getBlockReceipts. */
async function blockReceipts(edr: Handle, params: unknown) {
  const block = await edr(...blockQuery(params));
  if ("error" in block || block.result === null) return block;
  const receipts: unknown[] = [];
  for (const hash of fieldOf(block.result, "transactions") as readonly unknown[]) {
    const receipt = await edr("eth_getTransactionReceipt", [hash]);
    // The block was removed by a reorg between the two calls, so a receipt is missing.
    if ("error" in receipt || receipt.result === null) return receipt;
    receipts.push(receipt.result);
  }
  return { result: receipts };
}

/**
 * The JSON-RPC call that finds the requested block. The parameter is a number or tag, a block hash, or an object with
 * one of these (EIP-1898).
 */
function blockQuery(params: unknown): [method: string, params: unknown[]] {
  const asked: unknown = Array.isArray(params) ? params[0] : undefined;
  const block = fieldOf(asked, "blockHash") ?? fieldOf(asked, "blockNumber") ?? asked;
  const isHash = typeof block === "string" && block.length === 66;
  return [isHash ? "eth_getBlockByHash" : "eth_getBlockByNumber", [block, false]];
}
