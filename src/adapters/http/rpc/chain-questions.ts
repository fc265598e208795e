/**
 * What callers' reads ask of a chain. A chain that is slow is asked so many things at once, and the rest waits its turn here
 * instead of being refused: clients that follow a transaction ask on a timer that waits for no answer (web3.js three things
 * for each transaction), and take a refusal for the transaction's end.
 *
 * A question joins an equal one of its key that has not been put to the chain yet, so what waits is bounded by what there is
 * to ask, not by how often it is asked. It never joins one that is under way: the chain may have answered that before the
 * caller's last transaction, and who was told of that one must find it in whatever it reads then. Nothing is kept either.
 *
 * Keys take turns, and no key has all the places: one that asks for what takes long keeps nobody else from asking.
 */
import { unavailable } from "../../../domain/errors.ts";
import type { PassedAnswer } from "../../../ports/chain.ts";
import { within } from "../../../ports/clock.ts";
import { type Asking, type ChainAnswer, leftMs } from "./asking.ts";
import { RpcFailure, result } from "./packet.ts";

/** As many connections as callers' questions have to an endpoint. */
const AT_ONCE = 16;
const OF_ONE_KEY = 12;
/** Of one answer, in all its copies together: each who shares it has it written out anew, at the same moment. */
const MOST_SHARED_CHARACTERS = 8 * 1024 * 1024;

type Key = string | null;
/** Null: it was too large for all who share it, and has to be asked for again. */
type Tell = (answer: Promise<ChainAnswer> | null) => void;

interface Question {
  readonly key: Key;
  /** Method and params: equal questions have the same. */
  readonly text: string;
  readonly put: () => Promise<PassedAnswer>;
  readonly askers: Set<Tell>;
}

export class ChainQuestions {
  private readonly lines = new Map<number, Line>();

  /** Throws UNAVAILABLE when the packet's time is over. */
  ask(asking: Asking, method: string, params: unknown): Promise<ChainAnswer> {
    const { api, chainId, servesChain } = asking;
    // Refused by the API: a line for every chain that somebody can name would be a line without end.
    if (!servesChain) return answered(() => api.askChain(chainId, method, params));
    const line = this.lines.get(chainId) ?? new Line();
    this.lines.set(chainId, line);
    return line.ask(asking, method, params);
  }
}

/** The questions to one chain. */
class Line {
  /** By key, the one whose turn is next first; and by text, the oldest first. */
  private readonly waiting = new Map<Key, Map<string, Question>>();
  private readonly underWay = new Map<Key, number>();
  private free = AT_ONCE;

  async ask(asking: Asking, method: string, params: unknown): Promise<ChainAnswer> {
    const { api, chainId, principal } = asking;
    const asked = {
      key: principal.name,
      text: JSON.stringify([method, params ?? []]),
      put: () => api.askChain(chainId, method, params),
    };
    for (;;) {
      const answer = await this.told(asking, this.waitingLike({ ...asked, askers: new Set() }));
      if (answer !== null) return answer;
    }
  }

  private async told(asking: Asking, question: Question): Promise<ChainAnswer | null> {
    let tell: Tell = () => undefined;
    const told = new Promise<ChainAnswer | null>((resolve) => {
      tell = resolve;
    });
    question.askers.add(tell);
    this.putNext();
    try {
      return await within(asking.clock, told, { ms: Math.max(0, leftMs(asking)), late: tooLate });
    } finally {
      question.askers.delete(tell);
      if (question.askers.size === 0) this.drop(question);
    }
  }

  /** The equal one that waits; else this one, at the end of its key's. */
  private waitingLike(question: Question): Question {
    const own = this.waiting.get(question.key) ?? new Map<string, Question>();
    this.waiting.set(question.key, own);
    const like = own.get(question.text) ?? question;
    own.set(question.text, like);
    return like;
  }

  private drop(question: Question): void {
    const own = this.waiting.get(question.key);
    if (own?.get(question.text) !== question) return;
    own.delete(question.text);
    if (own.size === 0) this.waiting.delete(question.key);
  }

  private putNext(): void {
    while (this.free > 0) {
      const question = this.next();
      if (question === null) return;
      void this.put(question);
    }
  }

  private next(): Question | null {
    for (const [key, own] of this.waiting) {
      if (this.underWayOf(key) >= OF_ONE_KEY) continue;
      const [question = null] = own.values();
      if (question === null) continue;
      own.delete(question.text);
      // Behind all others.
      this.waiting.delete(key);
      if (own.size > 0) this.waiting.set(key, own);
      return question;
    }
    return null;
  }

  private async put(question: Question): Promise<void> {
    const { key, put } = question;
    this.free--;
    this.underWay.set(key, this.underWayOf(key) + 1);
    const answer = answered(put);
    const characters = await answer.then(charactersIn, () => 0);
    this.free++;
    const left = this.underWayOf(key) - 1;
    if (left === 0) this.underWay.delete(key);
    else this.underWay.set(key, left);
    const most = Math.max(1, Math.floor(MOST_SHARED_CHARACTERS / characters));
    for (const [at, tell] of [...question.askers].entries()) tell(at < most ? answer : null);
    this.putNext();
  }

  private underWayOf(key: Key): number {
    return this.underWay.get(key) ?? 0;
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
  throw unavailable("no answer in time: ask again, or for less at once");
}
