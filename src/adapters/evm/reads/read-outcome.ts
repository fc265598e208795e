/**
 * Logs and revert reason of a mined transaction, for display. The data is untrusted: contracts write logs and reasons,
 * endpoints report them. Malformed data is a bad answer, and every list and text has a limit.
 */
import { numberToHex } from "viem/utils";
import type { Hex } from "../../../domain/lane.ts";
import type { OutcomeQuestion, ShownLog, ShownOutcome } from "../../../ports/chain.ts";
import { type Call, ChainUnavailable, type PassedAnswer, type Revert } from "../../../ports/chain.ts";
import { decodeRevert, revertDataOf, shorten } from "../codec/error-texts.ts";
import { knownEvent } from "../codec/known-events.ts";
import { BadAnswer, read } from "../rpc/quantities.ts";
import { callObject } from "./simulate-call.ts";

const MOST_LOGS = 100;
const MOST_TOPICS = 4;
/** Limit on the data of each log and of a revert reason. An explorer shows more. */
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
 * Replays the call on the block before. Null if it does not revert now: earlier transactions of its block may have
 * caused the revert.
 */
async function fetchRevert(ask: Ask, call: Call, onBlock: number): Promise<Revert | null> {
  const answer = await ask("eth_call", [callObject(call), numberToHex(onBlock)]);
  if (answer.kind === "result") return null;
  const bytes = revertDataOf(answer.data);
  if (bytes === null) return { name: null, message: shorten(answer.message), data: "0x" };
  return { ...decodeRevert(bytes), data: cut(bytes) };
}

function cut(data: Hex): Hex {
  return data.slice(0, 2 + 2 * MOST_BYTES) as Hex;
}
