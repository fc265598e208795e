/**
 * Reads the logs and the revert reason of a mined transaction, for display. The data is untrusted: contracts write it,
 * endpoints report it. Malformed data counts as a bad response, and every list and text has a limit.
 */
import { numberToHex, parseAbiItem, toEventSelector } from "viem/utils";
import type { Hash, Hex } from "../../../domain/lane.ts";
import {
  type Call,
  ChainUnavailable,
  type KnownEvent,
  type OutcomeQuestion,
  type PassedAnswer,
  type Revert,
  type ShownLog,
  type ShownOutcome,
} from "../../../ports/chain.ts";
import { decodeRevert, revertDataOf, shorten } from "../codec/error-texts.ts";
import { BadAnswer, read } from "../rpc/rpc-errors.ts";
import { callObject } from "./simulate-call.ts";

const MOST_LOGS = 100;
const MOST_TOPICS = 4;
/** Limit on the bytes shown of each log and of a revert reason. A block explorer shows the rest. */
const MOST_BYTES = 1_024;

type Ask = (method: string, params: unknown) => Promise<PassedAnswer>;

export async function fetchOutcome(ask: Ask, { txHash, replay }: OutcomeQuestion): Promise<ShownOutcome | null> {
  const [answer, revert] = await Promise.all([
    ask("eth_getTransactionReceipt", [txHash]),
    replay === null ? null : fetchRevert(ask, replay.call, replay.onBlock),
  ]);
  if (answer.kind === "error") throw new ChainUnavailable(shorten(answer.message));
  if (answer.result === null) return null;
  try {
    const receipt = read.record(answer.result, "a receipt");
    if (read.hash(receipt.transactionHash, "transactionHash") !== txHash)
      throw new BadAnswer("it is the receipt of another transaction");
    const all = read.array(receipt.logs, "logs");
    const logs = all.slice(0, MOST_LOGS).map(readLog);
    return { blockHash: read.hash(receipt.blockHash, "blockHash"), logs, more: all.length - logs.length, revert };
  } catch (error) {
    if (error instanceof BadAnswer)
      throw new ChainUnavailable(`an endpoint returned an unusable receipt: ${error.message}`);
    throw error;
  }
}

function readLog(value: unknown): ShownLog {
  const log = read.record(value, "a log");
  const topics = read.array(log.topics, "topics").map((topic) => read.hash(topic, "a topic"));
  if (topics.length > MOST_TOPICS) throw new BadAnswer("a log has more than four topics");
  const data = read.bytes(log.data, "data");
  const address = read.address(log.address, "address");
  const shown = { address, topics, data: cut(data), dataLength: (data.length - 2) / 2 };
  return { ...shown, event: knownEvent(topics, data) };
}

/**
 * Replays a reverted call on the block before its own to get the reason. Null if it does not revert there: earlier
 * transactions of its own block may have caused the revert.
 */
async function fetchRevert(ask: Ask, call: Call, onBlock: number): Promise<Revert | null> {
  const answer = await ask("eth_call", [callObject(call), numberToHex(onBlock)]);
  if (answer.kind === "result") return null;
  const bytes = revertDataOf(answer.data);
  if (bytes === null) return { name: null, message: shorten(answer.message), data: "0x" };
  return { ...decodeRevert(bytes), data: cut(bytes) };
}

const cut = (data: Hex) => data.slice(0, 2 + 2 * MOST_BYTES) as Hex;

/**
 * Well-known events: those of the token standards and of widely inherited contracts. The first topic identifies the
 * signature; topics and data must also match its layout.
 */

/**
 * Well-known events. They have static types only, so each word is an address, a number or a bool. Topics hold the
 * indexed parameters, data the others.
 */
const KNOWN = [
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)",
  "event Approval(address indexed owner, address indexed spender, uint256 value)",
  "event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId)",
  "event ApprovalForAll(address indexed owner, address indexed operator, bool approved)",
  "event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value)",
  "event Deposit(address indexed to, uint256 value)",
  "event Withdrawal(address indexed from, uint256 value)",
  "event OwnershipTransferred(address indexed previousOwner, address indexed newOwner)",
  "event Upgraded(address indexed implementation)",
  "event Paused(address account)",
  "event Unpaused(address account)",
] as const;

interface Input {
  readonly name: string;
  readonly type: string;
  readonly indexed: boolean;
}

type Layout = (typeof LAYOUTS)[number];

const LAYOUTS = KNOWN.map((text) => {
  const { name, inputs } = parseAbiItem(text) as { readonly name: string; readonly inputs: readonly Input[] };
  return { name, inputs, selector: toEventSelector(text) };
});

const WORD = 64;

export function knownEvent([selector, ...indexed]: readonly Hash[], data: Hex): KnownEvent | null {
  for (const layout of LAYOUTS) {
    const found = layout.selector === selector ? fitted(layout, indexed, data) : null;
    if (found !== null) return found;
  }
  return null;
}

function fitted({ name, inputs }: Layout, topics: readonly Hash[], data: Hex): KnownEvent | null {
  const words = data.slice(2).match(/.{64}/g) ?? [];
  const [outside, inside] = [inputs.filter(({ indexed }) => indexed), inputs.filter(({ indexed }) => !indexed)];
  if (outside.length !== topics.length || data.length !== 2 + inside.length * WORD) return null;
  const values = [...topics.map((topic) => topic.slice(2)), ...words];
  const args = [...outside, ...inside].flatMap((input, at) => {
    const value = wordAs(input.type, values[at] ?? "");
    return value === null ? [] : [{ name: input.name, value }];
  });
  return args.length === inputs.length ? { name, args } : null;
}

/**
 * Decodes a word as `type`; null if it is not a valid value, which means that another event has the same first topic.
 */
function wordAs(type: string, word: string) {
  if (type === "uint256") return BigInt(`0x${word}`).toString();
  if (type === "bool") return /^0{63}[01]$/.test(word) ? String(word.endsWith("1")) : null;
  return /^0{24}/.test(word) ? `0x${word.slice(24)}` : null;
}
