/**
 * Queue of callers' reads to a chain. A limited number runs in parallel, and the rest waits instead of being refused:
 * clients that follow a transaction poll on a timer without waiting for responses (web3.js sends three calls per
 * transaction), and treat a refusal as the transaction's failure.
 *
 * A read joins an equal read of the same API key that was not sent yet, so the queue is bounded by the number of
 * distinct reads. It never joins a read in progress: the chain may have answered that before the caller's last
 * transaction, and a caller must find the transactions that it has sent. For the same reason nothing is cached.
 *
 * Keys take turns, and no key may use all slots, so slow reads of one key do not block others.
 */
import { unavailable } from "../../../domain/errors.ts";
import type { PassedAnswer } from "../../../ports/chain.ts";
import { KeyCounts } from "../admission/key-counts.ts";
import { RpcFailure, result } from "./packet.ts";
import { type ChainAnswer, inTime, type RpcContext } from "./rpc-context.ts";

/** Number of connections to an endpoint that callers' reads may use. */
const AT_ONCE = 16;
const OF_ONE_KEY = 12;
/**
 * Size limit on all copies of one shared response. Each caller gets a copy, and all copies are serialised at the same
 * time.
 */
const MOST_SHARED_CHARACTERS = 8 * 1024 * 1024;

type Key = string | null;
/**
 * Delivers the response to a waiting read. Null if the response is too large to share, so that it must be read again.
 */
type Deliver = (answer: Promise<ChainAnswer> | null) => void;

interface Read {
  readonly key: Key;
  /** Method and parameters as text; equal reads have equal texts. */
  readonly text: string;
  readonly put: () => Promise<PassedAnswer>;
  readonly askers: Set<Deliver>;
}

/**
 * Creates the read queues of all chains. The returned function throws UNAVAILABLE when the time for answering the
 * JSON-RPC request is over.
 */
export function chainReads(): RpcContext["readChain"] {
  const queues = new Map<number, ReturnType<typeof chainQueue>>();
  return (context, method, params) => {
    const { api, chainId, servesChain, principal } = context;
    const put = () => api.askChain(chainId, method, params);
    // Do not queue reads for an unknown chain id, because the number of queues would be unbounded; the API refuses
    // them.
    if (!servesChain) return answered(put);
    const queue = queues.get(chainId) ?? chainQueue();
    queues.set(chainId, queue);
    return queue(context, { key: principal.name, text: JSON.stringify([method, params ?? []]), put });
  };
}

/** Creates the queue of reads to one chain. */
function chainQueue() {
  /** Waiting reads, grouped by API key (the next key first) and then by text (the oldest read first). */
  const waiting = new Map<Key, Map<string, Read>>();
  const running = new KeyCounts();

  /** Returns an equal read that is already waiting, or appends this one to its key's queue. */
  const equalOrNew = (read: Read) => {
    const own = waiting.get(read.key) ?? new Map<string, Read>();
    waiting.set(read.key, own);
    const like = own.get(read.text) ?? read;
    own.set(read.text, like);
    return like;
  };

  const drop = (read: Read) => {
    const own = waiting.get(read.key);
    if (own?.get(read.text) !== read) return;
    own.delete(read.text);
    if (own.size === 0) waiting.delete(read.key);
  };

  const next = () => {
    for (const [key, own] of running.total < AT_ONCE ? waiting : []) {
      const [read] = own.values();
      if (read === undefined || running.of(key) >= OF_ONE_KEY) continue;
      own.delete(read.text);
      // Move the key to the end, so that keys take turns.
      waiting.delete(key);
      if (own.size > 0) waiting.set(key, own);
      return read;
    }
    return null;
  };

  const putNext = () => {
    for (let read = next(); read !== null; read = next()) void put(read);
  };

  const put = async (read: Read) => {
    running.add(read.key, 1);
    const answer = answered(read.put);
    const characters = await answer.then(charactersIn, () => 0);
    running.add(read.key, -1);
    const most = Math.max(1, Math.floor(MOST_SHARED_CHARACTERS / characters));
    for (const [at, deliver] of [...read.askers].entries()) deliver(at < most ? answer : null);
    putNext();
  };

  const join = async (context: RpcContext, read: Read) => {
    let deliver: Deliver = () => undefined;
    const delivered = new Promise<ChainAnswer | null>((resolve) => {
      deliver = resolve;
    });
    read.askers.add(deliver);
    putNext();
    try {
      return await inTime(context, delivered, tooLate);
    } finally {
      read.askers.delete(deliver);
      if (read.askers.size === 0) drop(read);
    }
  };

  return async (context: RpcContext, asked: Omit<Read, "askers">) => {
    for (;;) {
      const answer = await join(context, equalOrNew({ ...asked, askers: new Set() }));
      if (answer !== null) return answer;
    }
  };
}

async function answered(put: () => Promise<PassedAnswer>): Promise<ChainAnswer> {
  const answer = await put();
  if (answer.kind === "result") return { answer, outcome: result(answer.result) };
  return { answer, outcome: new RpcFailure(answer.code, answer.message, answer.data) };
}

function charactersIn({ outcome }: ChainAnswer) {
  if (!(outcome instanceof RpcFailure)) return outcome.json.length;
  return outcome.message.length + (JSON.stringify(outcome.data)?.length ?? 0);
}

function tooLate(): never {
  throw unavailable("the chain did not answer in time: repeat the call, or request less at once");
}
