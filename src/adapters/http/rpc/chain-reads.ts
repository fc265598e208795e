/**
 * Queue of callers' reads to a chain. A limited number runs in parallel, and the rest waits instead of being refused:
 * clients that follow a transaction poll on a timer without waiting for answers (web3.js sends three calls per
 * transaction), and treat a refusal as the transaction's failure.
 *
 * A read joins an equal one of the same key that was not sent yet, so the queue is bounded by the number of distinct
 * reads. It never joins one in progress: the chain may have answered that before the caller's last transaction, and a
 * caller must find what it has sent. Nothing is cached either.
 *
 * Keys take turns, and no key may use all places: slow reads of one key do not block others.
 */
import { unavailable } from "../../../domain/errors.ts";
import type { PassedAnswer } from "../../../ports/chain.ts";
import { within } from "../../../ports/clock.ts";
import { KeyCounts } from "../admission/key-counts.ts";
import { RpcFailure, result } from "./packet.ts";
import { type ChainAnswer, leftMs, type RpcContext } from "./rpc-context.ts";

/** Connections to an endpoint that callers' reads may use. */
const AT_ONCE = 16;
const OF_ONE_KEY = 12;
/** Limit of one answer's copies together: each caller's copy is serialised at the same moment. */
const MOST_SHARED_CHARACTERS = 8 * 1024 * 1024;

type Key = string | null;
/** Null: too large to share, so it must be read again. */
type Deliver = (answer: Promise<ChainAnswer> | null) => void;

interface Read {
  readonly key: Key;
  /** Method and parameters: equal reads have the same text. */
  readonly text: string;
  readonly put: () => Promise<PassedAnswer>;
  readonly askers: Set<Deliver>;
}

export class ChainReads {
  private readonly queues = new Map<number, ChainQueue>();

  /** Throws UNAVAILABLE when the packet's time is over. */
  ask(context: RpcContext, method: string, params: unknown): Promise<ChainAnswer> {
    const { api, chainId, servesChain } = context;
    // The API refuses it: a queue for every unknown chain id would be unbounded.
    if (!servesChain) return answered(() => api.askChain(chainId, method, params));
    const queue = this.queues.get(chainId) ?? new ChainQueue();
    this.queues.set(chainId, queue);
    return queue.ask(context, method, params);
  }
}

/** The reads of one chain. */
class ChainQueue {
  /** Waiting reads: by key, the next one first, and by text, the oldest first. */
  private readonly waiting = new Map<Key, Map<string, Read>>();
  private readonly running = new KeyCounts();

  async ask(context: RpcContext, method: string, params: unknown): Promise<ChainAnswer> {
    const { api, chainId, principal } = context;
    const asked = {
      key: principal.name,
      text: JSON.stringify([method, params ?? []]),
      put: () => api.askChain(chainId, method, params),
    };
    for (;;) {
      const answer = await this.join(context, this.equalOrNew({ ...asked, askers: new Set() }));
      if (answer !== null) return answer;
    }
  }

  private async join(context: RpcContext, read: Read): Promise<ChainAnswer | null> {
    let deliver: Deliver = () => undefined;
    const delivered = new Promise<ChainAnswer | null>((resolve) => {
      deliver = resolve;
    });
    read.askers.add(deliver);
    this.putNext();
    try {
      return await within(context.clock, delivered, { ms: Math.max(0, leftMs(context)), late: tooLate });
    } finally {
      read.askers.delete(deliver);
      if (read.askers.size === 0) this.drop(read);
    }
  }

  /** The equal read that waits, else this one at the end of its key's queue. */
  private equalOrNew(read: Read): Read {
    const own = this.waiting.get(read.key) ?? new Map<string, Read>();
    this.waiting.set(read.key, own);
    const like = own.get(read.text) ?? read;
    own.set(read.text, like);
    return like;
  }

  private drop(read: Read): void {
    const own = this.waiting.get(read.key);
    if (own?.get(read.text) !== read) return;
    own.delete(read.text);
    if (own.size === 0) this.waiting.delete(read.key);
  }

  private putNext(): void {
    while (this.running.total < AT_ONCE) {
      const read = this.next();
      if (read === null) return;
      void this.put(read);
    }
  }

  private next(): Read | null {
    for (const [key, own] of this.waiting) {
      if (this.running.of(key) >= OF_ONE_KEY) continue;
      const [read = null] = own.values();
      if (read === null) continue;
      own.delete(read.text);
      // The key moves to the end.
      this.waiting.delete(key);
      if (own.size > 0) this.waiting.set(key, own);
      return read;
    }
    return null;
  }

  private async put(read: Read): Promise<void> {
    const { key, put } = read;
    this.running.add(key, 1);
    const answer = answered(put);
    const characters = await answer.then(charactersIn, () => 0);
    this.running.add(key, -1);
    const most = Math.max(1, Math.floor(MOST_SHARED_CHARACTERS / characters));
    for (const [at, deliver] of [...read.askers].entries()) deliver(at < most ? answer : null);
    this.putNext();
  }
}

async function answered(put: () => Promise<PassedAnswer>): Promise<ChainAnswer> {
  const answer = await put();
  if (answer.kind === "result") return { answer, outcome: result(answer.result) };
  return { answer, outcome: new RpcFailure(answer.code, answer.message, answer.data) };
}

function charactersIn({ outcome }: ChainAnswer): number {
  if (!(outcome instanceof RpcFailure)) return outcome.json.length;
  return outcome.message.length + (JSON.stringify(outcome.data)?.length ?? 0);
}

function tooLate(): never {
  throw unavailable("no answer in time: repeat it, or request less at once");
}
