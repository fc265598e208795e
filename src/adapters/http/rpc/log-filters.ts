/**
 * How much a filter of logs may name, and how many blocks it may reach over: each is work for the endpoints and memory here,
 * and a subscription has it done again with every block.
 */
import { invalid, unavailable } from "../../../domain/errors.ts";
import type { Asking } from "./asking.ts";

export const MOST_NAMED = 1_000;
/** A topic with its quotes and comma has 69. */
const MOST_CHARACTERS = MOST_NAMED * 72;
const FIELDS = ["address", "topics", "blockHash", "fromBlock", "toBlock"];
const TAGS = new Set(["latest", "pending", "safe", "finalized"]);

type Filter = Readonly<Record<string, unknown>>;

/** Throws INVALID_REQUEST for the first of `params`, a filter, where it names or reaches over too much. */
export async function refuseWideFilter(asking: Asking, params: unknown): Promise<void> {
  if (params !== undefined && !Array.isArray(params)) throw invalid("params", "must be a list that holds a filter");
  const [filter] = (params ?? []) as readonly unknown[];
  if (typeof filter !== "object" || filter === null) return;
  refuseOtherSpelling(filter as Filter);
  refuseManyNames(filter as Filter);
  await refuseLongRange(asking, filter as Filter);
}

/** geth reads `fromblock` as `fromBlock`: Go's JSON does not look at case. */
function refuseOtherSpelling(filter: Filter): void {
  for (const name of Object.keys(filter)) {
    if (FIELDS.includes(name)) continue;
    const meant = FIELDS.find((field) => field.toLowerCase() === name.toLowerCase());
    if (meant !== undefined) throw invalid(`params.0.${name}`, `is spelled ${meant}`);
  }
}

/** Throws INVALID_REQUEST. */
export function refuseManyNames({ address, topics }: Filter): void {
  const named = [address ?? [], ...[topics ?? []].flat()].flat();
  if (named.length > MOST_NAMED) {
    throw invalid("params.0", `names ${named.length} addresses and topics; at most ${MOST_NAMED} are taken`);
  }
  if (JSON.stringify(named).length > MOST_CHARACTERS) throw invalid("params.0", "names more than addresses and topics");
}

async function refuseLongRange(asking: Asking, filter: Filter): Promise<void> {
  const { blockHash, fromBlock, toBlock } = filter;
  if ((blockHash ?? null) !== null) return refuseBesideHash(filter);
  const [from, to] = [fromBlock ?? "latest", toBlock ?? "latest"];
  if (from === to) return;
  const [first, last] = await Promise.all([
    numberOf(asking, from, "params.0.fromBlock"),
    numberOf(asking, to, "params.0.toBlock"),
  ]);
  if (last - first < asking.logsRange) return;
  const detail = `reaches over ${last - first + 1} blocks; at most ${asking.logsRange} are taken: see FENCEPOST_RPC_LOGS_RANGE`;
  throw invalid("params.0", detail);
}

/** EIP-234 has one or the other. An endpoint that passes over the hash would search every block of the range. */
function refuseBesideHash({ blockHash, fromBlock, toBlock }: Filter): void {
  if (typeof blockHash !== "string" || !/^0x[0-9a-f]{64}$/i.test(blockHash)) {
    throw invalid("params.0.blockHash", "must be a hash of 32 bytes");
  }
  if ((fromBlock ?? toBlock ?? null) !== null) {
    throw invalid("params.0.blockHash", "names one block: give no fromBlock or toBlock beside it");
  }
}

async function numberOf(asking: Asking, block: unknown, path: string): Promise<number> {
  if (block === "earliest") return 0;
  if (typeof block === "number" || (typeof block === "string" && /^(0x[0-9a-f]{1,16}|\d{1,16})$/i.test(block))) {
    return Number(block);
  }
  if (typeof block !== "string" || !TAGS.has(block)) throw invalid(path, "must be a block number in 0x hex, or a tag");
  const { answer } = await asking.questions.ask(asking, "eth_getBlockByNumber", [block, false]);
  const { number } = (answer.kind === "result" ? (answer.result ?? {}) : {}) as { readonly number?: unknown };
  // A pending block has a number with some nodes, and null with others.
  if (typeof number === "string") return Number(number);
  if (block === "pending") return numberOf(asking, "latest", path);
  throw unavailable(`the chain does not say which block is ${block}`);
}
