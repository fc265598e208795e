/**
 * Limits on a log filter: addresses, topics and blocks. Each costs work at the endpoints and memory at this node, and a
 * subscription repeats that with every block.
 */
import { type FencepostError, invalid, unavailable } from "../../../domain/errors.ts";
import { HASH } from "./packet.ts";
import type { RpcContext } from "./rpc-context.ts";

const MOST_NAMED = 1_000;
/** Largest size of a filter in characters. A topic with quotes and comma has 69 characters. */
const MOST_CHARACTERS = MOST_NAMED * 72;
const FIELDS = ["address", "topics", "blockHash", "fromBlock", "toBlock"];
const TAGS = new Set(["latest", "pending", "safe", "finalized"]);

type Filter = Readonly<Record<string, unknown>>;

/**
 * Throws INVALID_REQUEST if the filter (the first parameter) names too many addresses or topics, or spans too many
 * blocks.
 */
export async function refuseWideFilter(context: RpcContext, params: unknown): Promise<void> {
  if (params !== undefined && !Array.isArray(params))
    throw invalid("params", "must be a list whose first element is a filter");
  const [filter] = (params ?? []) as readonly unknown[];
  if (typeof filter !== "object" || filter === null) return;
  refuseOtherSpelling(filter as Filter);
  const refusal = manyNames(filter as Filter);
  if (refusal !== null) throw refusal;
  await refuseLongRange(context, filter as Filter);
}

/** Refuses other spellings of a filter's fields: geth also reads `fromblock`, because Go's JSON ignores case. */
function refuseOtherSpelling(filter: Filter) {
  for (const name of Object.keys(filter)) {
    if (FIELDS.includes(name)) continue;
    const meant = FIELDS.find((field) => field.toLowerCase() === name.toLowerCase());
    if (meant !== undefined) throw invalid(`params.0.${name}`, `is misspelled: use ${meant}`);
  }
}

/** Returns the error if a filter names too many addresses or topics; else null. */
export function manyNames({ address, topics }: Filter): FencepostError | null {
  const named = [address ?? [], ...[topics ?? []].flat()].flat();
  if (named.length > MOST_NAMED)
    return invalid("params.0", `names ${named.length} addresses and topics; the limit is ${MOST_NAMED}`);
  const isLong = JSON.stringify(named).length > MOST_CHARACTERS;
  return isLong ? invalid("params.0", "has values that are too long to be addresses or topics") : null;
}

async function refuseLongRange(context: RpcContext, filter: Filter) {
  const { blockHash, fromBlock, toBlock } = filter;
  if ((blockHash ?? null) !== null) return refuseBesideHash(filter);
  const [from, to] = [fromBlock ?? "latest", toBlock ?? "latest"];
  if (from === to) return;
  const [first, last] = await Promise.all([
    numberOf(context, from, "params.0.fromBlock"),
    numberOf(context, to, "params.0.toBlock"),
  ]);
  if (last - first < context.logsRange) return;
  const detail = `spans ${last - first + 1} blocks; the limit is ${context.logsRange}: see FENCEPOST_RPC_LOGS_RANGE`;
  throw invalid("params.0", detail);
}

/**
 * Refuses a filter with both a block hash and a range. EIP-234 allows only one of them, and an endpoint that ignores
 * the hash would search the whole range.
 */
function refuseBesideHash({ blockHash, fromBlock, toBlock }: Filter) {
  if (typeof blockHash !== "string" || !HASH.test(blockHash)) {
    throw invalid("params.0.blockHash", "must be a hash of 32 bytes");
  }
  if ((fromBlock ?? toBlock ?? null) !== null) {
    throw invalid("params.0.blockHash", "cannot be combined with fromBlock or toBlock");
  }
}

async function numberOf(context: RpcContext, block: unknown, path: string) {
  if (block === "earliest") return 0;
  if (typeof block === "number" || (typeof block === "string" && /^(0x[0-9a-f]{1,16}|\d{1,16})$/i.test(block))) {
    return Number(block);
  }
  if (typeof block !== "string" || !TAGS.has(block)) throw invalid(path, "must be a block number in 0x hex, or a tag");
  const { answer } = await context.readChain(context, "eth_getBlockByNumber", [block, false]);
  const { number } = (answer.kind === "result" ? (answer.result ?? {}) : {}) as { number?: unknown };
  // Check the type, because some nodes return null as the number of the pending block.
  if (typeof number === "string") return Number(number);
  if (block === "pending") return numberOf(context, "latest", path);
  throw unavailable(`the RPC endpoint returned no number for the block ${block}`);
}
