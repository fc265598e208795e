import { FencepostError } from "../../../domain/errors.ts";
import { refuseOutside } from "../../../domain/principal.ts";
import type { Asking } from "./asking.ts";
import { failureOf, REJECTED } from "./error-codes.ts";
import { RpcFailure, type RpcItem, type RpcOutcome, readPacket, writeAnswer } from "./packet.ts";
import { answerRead } from "./reads.ts";
import { answerRawSends, answerSends, SENDS } from "./sends.ts";
import { WaitingRoom } from "./waiting-room.ts";

/** Of one packet, at a time: what is asked of the chain waits in memory until it has all been answered. */
const READS_AT_ONCE = 16;
/** Of one packet, together. */
const MOST_ANSWER_BYTES = 32 * 1024 * 1024;

/** Answers packets as JSON. Every call of a packet has its own answer: one that fails keeps none of the others. */
export class PacketAnswerer {
  private readonly room = new WaitingRoom();

  async answer(asking: Asking, body: unknown): Promise<string> {
    const { isBatch, items } = readPacket(body);
    const outcomes = new Map<unknown, RpcOutcome>();
    const answer: Answer = (item, outcome) => void outcomes.set(item, outcome);
    const calls = items.filter((item): item is RpcItem => !("refused" in item));
    const refusal = outside(asking);
    if (refusal !== null) for (const call of calls) answer(call, refusal);
    else await this.answerCalls(asking, calls, answer);
    return writePacket(isBatch, items, (item) => outcomeOf(item, outcomes));
  }

  private async answerCalls(asking: Asking, calls: readonly RpcItem[], answer: Answer): Promise<void> {
    const of = (method: string) => calls.filter((call) => call.method === method);
    const reads = calls.filter(({ method }) => !SENDS.has(method));
    await Promise.all([
      answerSends(asking, of("eth_sendTransaction"), answer),
      answerRawSends(asking, of("eth_sendRawTransaction"), answer),
      this.answerReads(asking, reads, answer),
    ]);
  }

  private async answerReads(asking: Asking, reads: readonly RpcItem[], answer: Answer): Promise<void> {
    if (reads.length === 0) return;
    const leave = this.room.enter(asking.principal.name, { reads: reads.length, bytes: asking.bytes });
    if (leave === null) {
      for (const read of reads) answer(read, failureOf(tooManyReads(), asking.mask));
      return;
    }
    try {
      await answerFewAtATime(asking, reads, answer);
    } finally {
      leave();
    }
  }
}

function tooManyReads(): FencepostError {
  const detail = "too many reads wait for their answers on this node: ask again, and less often";
  return new FencepostError("QUEUE_FULL", detail, { retryAfterSeconds: 1 });
}

/** The same refusal for every call, each under its own id. */
export function refusePacket(body: unknown, failure: RpcFailure): string {
  const { isBatch, items } = readPacket(body);
  return writePacket(isBatch, items, (item) => ("refused" in item ? item.refused : failure));
}

type Item = ReturnType<typeof readPacket>["items"][number];
type Answer = (item: RpcItem, outcome: RpcOutcome) => void;

function writePacket(isBatch: boolean, items: readonly Item[], outcome: (item: Item) => RpcOutcome): string {
  const texts = items.map((item) => writeAnswer(item.id, outcome(item)));
  return isBatch ? `[${texts.join(",")}]` : (texts[0] as string);
}

function outcomeOf(item: Item, outcomes: ReadonlyMap<unknown, RpcOutcome>): RpcOutcome {
  if ("refused" in item) return item.refused;
  const outcome = outcomes.get(item);
  if (outcome === undefined) throw new Error(`a call of ${item.method} was left unanswered`);
  return outcome;
}

/** The chain that the whole packet is for. */
function outside({ principal, chainId, mask, onRefused }: Asking): RpcFailure | null {
  try {
    refuseOutside(principal, { chainId });
    return null;
  } catch (error) {
    if (!(error instanceof FencepostError)) throw error;
    onRefused(error);
    return failureOf(error, mask);
  }
}

async function answerFewAtATime(asking: Asking, reads: readonly RpcItem[], answer: Answer): Promise<void> {
  const waiting = [...reads];
  let bytes = 0;
  const next = async (): Promise<void> => {
    for (let read = waiting.shift(); read !== undefined; read = waiting.shift()) {
      const outcome = bytes > MOST_ANSWER_BYTES ? TOO_LARGE : await answerRead(asking, read);
      if (!(outcome instanceof RpcFailure)) bytes += outcome.json.length;
      answer(read, bytes > MOST_ANSWER_BYTES ? TOO_LARGE : outcome);
    }
  };
  await Promise.all(Array.from({ length: Math.min(READS_AT_ONCE, reads.length) }, next));
}

const TOO_LARGE = new RpcFailure(REJECTED, "response too large: ask for less at once");
