import { FencepostError } from "../../../domain/errors.ts";
import { refuseOutside } from "../../../domain/keys/principal.ts";
import { KeyCounts } from "../admission/key-counts.ts";
import { failureOf, REJECTED } from "./error-codes.ts";
import { fewAtATime } from "./few-at-a-time.ts";
import { type Answer, RpcFailure, type RpcItem, type RpcOutcome, readPacket, writeAnswer } from "./packet.ts";
import { answerRead } from "./reads.ts";
import type { RpcContext } from "./rpc-context.ts";
import { answerRawSends, answerSends, SENDS } from "./sends.ts";
import { answerSignatures, SIGNATURES } from "./signatures.ts";

/**
 * Number of parallel reads of one packet (a call or a batch). It is limited, because responses stay in memory until all
 * have arrived.
 */
const READS_AT_ONCE = 16;
/** Size limit on all responses of one packet (a call or a batch) together. */
const MOST_ANSWER_BYTES = 32 * 1024 * 1024;

/**
 * Answers JSON-RPC packets (a call or a batch). Each call has its own response: one that fails does not affect the
 * others.
 */
export function packetAnswerer() {
  const reserve = readBudget();

  const answerReads = async (context: RpcContext, reads: readonly RpcItem[], answer: Answer) => {
    if (reads.length === 0) return;
    const release = reserve(context.principal.name, { reads: reads.length, bytes: context.bytes });
    if (release === null) return refuseAll(reads, failureOf(tooManyReads(), context.mask), answer);
    await answerFewAtATime(context, reads, answer).finally(release);
  };

  return async (context: RpcContext, body: unknown) => {
    const { isBatch, items } = readPacket(body);
    const outcomes = new Map<unknown, RpcOutcome>();
    const answer: Answer = (item, outcome) => void outcomes.set(item, outcome);
    const calls = items.filter((item): item is RpcItem => !("refused" in item));
    const of = (method: string) => calls.filter((call) => call.method === method);
    const refusal = outside(context);
    if (refusal !== null) refuseAll(calls, refusal, answer);
    else
      await Promise.all([
        answerSends(context, of("eth_sendTransaction"), answer),
        answerRawSends(context, of("eth_sendRawTransaction"), answer),
        answerSignatures(context, calls.filter(isSignature), answer),
        answerReads(context, calls.filter(isRead), answer),
      ]);
    return writePacket(isBatch, items, (item) => outcomeOf(item, outcomes));
  };
}

const isSignature = ({ method }: RpcItem) => SIGNATURES.has(method);
const isRead = (item: RpcItem) => !SENDS.has(item.method) && !isSignature(item);

function refuseAll(calls: readonly RpcItem[], failure: RpcFailure, answer: Answer) {
  for (const call of calls) answer(call, failure);
}

function tooManyReads() {
  const detail = "too many reads wait for their answers on this node: repeat them later, and less often";
  return new FencepostError("QUEUE_FULL", detail, { retryAfterSeconds: 1 });
}

/** Answers every call of a packet (a call or a batch) with the same refusal, under the call's own id. */
export function refusePacket(body: unknown, failure: RpcFailure): string {
  const { isBatch, items } = readPacket(body);
  return writePacket(isBatch, items, (item) => ("refused" in item ? item.refused : failure));
}

type Item = ReturnType<typeof readPacket>["items"][number];

function writePacket(isBatch: boolean, items: readonly Item[], outcome: (item: Item) => RpcOutcome) {
  const texts = items.map((item) => writeAnswer(item.id, outcome(item)));
  return isBatch ? `[${texts.join(",")}]` : (texts[0] as string);
}

function outcomeOf(item: Item, outcomes: ReadonlyMap<unknown, RpcOutcome>) {
  if ("refused" in item) return item.refused;
  const outcome = outcomes.get(item);
  if (outcome === undefined) throw new Error(`the JSON-RPC call of ${item.method} has no result`);
  return outcome;
}

/** Returns the refusal if the API key may not use the chain of the JSON-RPC request. */
function outside({ principal, chainId, mask, onRefused }: RpcContext) {
  try {
    refuseOutside(principal, { chainId });
    return null;
  } catch (error) {
    if (!(error instanceof FencepostError)) throw error;
    onRefused(error);
    return failureOf(error, mask);
  }
}

async function answerFewAtATime(context: RpcContext, reads: readonly RpcItem[], answer: Answer) {
  let bytes = 0;
  await fewAtATime(reads, READS_AT_ONCE, async (read) => {
    const outcome = bytes > MOST_ANSWER_BYTES ? TOO_LARGE : await answerRead(context, read);
    if (!(outcome instanceof RpcFailure)) bytes += outcome.json.length;
    answer(read, bytes > MOST_ANSWER_BYTES ? TOO_LARGE : outcome);
  });
}

const TOO_LARGE = new RpcFailure(REJECTED, "response too large: request less at once");

const MOST_BYTES = 96 * 1024 * 1024;
/** Memory that a pending read takes beside its text: the request, its connection and its promises. */
const EACH_READ_BYTES = 8 * 1024;
/** Hard limit as a multiple of the budget: many keys, each below its share, could exceed the budget together. */
const OVERFULL = 2;

interface Reads {
  readonly reads: number;
  readonly bytes: number;
}

/**
 * Memory budget of reads that wait for a slow chain. It is larger than all that real clients request at once. When it
 * is used up, only keys above an equal share are refused. Returns null if refused; else a function to call once the
 * reads are answered.
 */
export function readBudget() {
  const counts = new KeyCounts();
  return (key: string | null, { reads, bytes }: Reads) => {
    const more = reads * EACH_READ_BYTES + bytes;
    const own = counts.of(key) + more;
    const full = counts.total + more;
    if (full > MOST_BYTES * OVERFULL || (full > MOST_BYTES && own > MOST_BYTES / counts.keysWith(key))) return null;
    counts.add(key, more);
    return () => counts.add(key, -more);
  };
}
