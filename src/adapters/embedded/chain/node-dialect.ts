import { type Answer, EXECUTION_ERROR, fault, type Handle, type RpcFault } from "./json-rpc.ts";

/** EDR speaks Hardhat's dialect. Where that differs from what nodes say in a way that clients depend on, we translate. */
export function speakLikeANode(edr: Handle): Handle {
  return async (method, params) => {
    if (method === "eth_getBlockReceipts") return blockReceipts(edr, params);
    if (method === "eth_estimateGas" && isBeyondWealth(params)) {
      return fault(EXECUTION_ERROR, "insufficient funds for transfer");
    }
    return translateRevert(await edr(method, withWholePush(params)));
  };
}

/**
 * Where value and the price of the gas come to more than 256 bits, EDR's estimate does not fail: it panics, and takes this
 * process with it. Nobody has half of that.
 */
function isBeyondWealth(params: unknown): boolean {
  const call: unknown = Array.isArray(params) ? params[0] : undefined;
  if (typeof call !== "object" || call === null || !("value" in call) || typeof call.value !== "string") return false;
  return QUANTITY.test(call.value) && BigInt(call.value) >> 255n > 0n;
}

const QUANTITY = /^0x[0-9a-f]+$/i;

/**
 * Code to deploy that is nothing but a PUSH20 cut short makes EDR panic as well: it looks for a library's address there. The
 * EVM reads zeros beyond the end, so with the zeros written out it is the same code.
 */
function withWholePush(params: unknown): unknown {
  const [call, ...rest]: unknown[] = Array.isArray(params) ? params : [];
  if (typeof call !== "object" || call === null || ("to" in call && call.to !== null)) return params;
  const padded = Object.entries(call).map(([name, value]) => [
    name,
    isCutPush(name, value) ? value.padEnd(44, "0") : value,
  ]);
  return [Object.fromEntries(padded), ...rest];
}

function isCutPush(name: string, value: unknown): value is string {
  return /^(data|input)$/.test(name) && typeof value === "string" && /^0x73(?:[0-9a-f]{2}){0,19}$/i.test(value);
}

/**
 * geth, reth and anvil report a revert as code 3 with the return data as a hex string, and that is what libraries
 * decode; EDR wraps the data: `{ code: -32000, data: { reason: { Revert: "0x…" }, data: "0x…" } }`.
 */
function translateRevert(answer: Answer): Answer {
  if (!("error" in answer)) return answer;
  const data = revertData(answer.error);
  if (data === null) return answer;
  const reason = /reverted with reason string '(.*)'$/s.exec(answer.error.message)?.[1];
  return { error: { code: 3, message: `execution reverted${reason === undefined ? "" : `: ${reason}`}`, data } };
}

function revertData({ data }: RpcFault): string | null {
  if (typeof data !== "object" || data === null || !("reason" in data) || !("data" in data)) return null;
  const { reason } = data;
  const reverted = typeof reason === "object" && reason !== null && "Revert" in reason;
  return reverted && typeof data.data === "string" ? data.data : null;
}

/** EDR lacks the method, every node has it: collected from the receipts of the block's transactions. */
async function blockReceipts(edr: Handle, params: unknown): Promise<Answer> {
  const block = await edr(...blockQuery(params));
  if ("error" in block || block.result === null) return block;
  const receipts: unknown[] = [];
  for (const hash of transactionHashes(block.result)) {
    const receipt = await edr("eth_getTransactionReceipt", [hash]);
    // Gone since: the block was reverted between the two questions.
    if ("error" in receipt || receipt.result === null) return receipt;
    receipts.push(receipt.result);
  }
  return { result: receipts };
}

/** The parameter is a number or tag, a block hash, or an object with either (EIP-1898). */
function blockQuery(params: unknown): [method: string, params: unknown[]] {
  const asked: unknown = Array.isArray(params) ? params[0] : undefined;
  if (typeof asked === "object" && asked !== null) {
    if ("blockHash" in asked) return ["eth_getBlockByHash", [asked.blockHash, false]];
    if ("blockNumber" in asked) return ["eth_getBlockByNumber", [asked.blockNumber, false]];
  }
  const isHash = typeof asked === "string" && asked.length === 66;
  return [isHash ? "eth_getBlockByHash" : "eth_getBlockByNumber", [asked, false]];
}

function transactionHashes(block: unknown): readonly unknown[] {
  const found = typeof block === "object" && block !== null && "transactions" in block ? block.transactions : [];
  return Array.isArray(found) ? found : [];
}
