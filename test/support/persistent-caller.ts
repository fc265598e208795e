import {
  type CreatedTransaction,
  type CreateTransaction,
  FencepostApiError,
  type FencepostClient,
} from "../../src/client/index.ts";
import { waitUntil } from "./wait-until.ts";

const REPEATABLE = new Set(["UNREACHABLE", "UNAVAILABLE", "NOT_LEADER", "QUEUE_FULL"]);
const EVERY_MS = 250;
const GIVE_UP_MS = 60_000;

function isRepeatable(error: unknown): error is FencepostApiError {
  return error instanceof FencepostApiError && REPEATABLE.has(error.code);
}

export interface Refusal {
  /** HTTP status; 0 if no response came. */
  readonly status: number;
  readonly code: string;
}

/**
 * A caller that behaves as documented. If a request gets no response or is refused for now, the caller repeats it with
 * the same request id, at a node that is up by then. Any other error is thrown.
 */
export class PersistentCaller {
  /** Called for each request that got a final response. */
  onAnswer: () => void = () => undefined;
  /** Every response that asked to retry later, including those for items of a batch. */
  readonly refusals: Refusal[] = [];
  /** Returns the client to send to; null if no node is up, so that the caller waits. */
  current: () => FencepostClient | null;

  private readonly everyMs: number;

  constructor(current: () => FencepostClient | null, everyMs = EVERY_MS) {
    this.current = current;
    this.everyMs = everyMs;
  }

  send(transaction: CreateTransaction): Promise<CreatedTransaction> {
    return this.repeat((client) => client.send(transaction));
  }

  /** Of a batch, send only those items again that were refused for now. */
  async sendBatch(transactions: readonly CreateTransaction[]): Promise<readonly CreatedTransaction[]> {
    const answered = new Map<CreateTransaction, CreatedTransaction>();
    await this.repeat(async (client) => {
      const open = transactions.filter((transaction) => !answered.has(transaction));
      const results = await client.sendBatch(open);
      results.forEach((result, index) => {
        if (result.status === 200 || result.status === 202) {
          answered.set(open[index] as CreateTransaction, result as CreatedTransaction);
        } else {
          this.noteRefusal(result as Refusal);
        }
      });
      return answered.size === transactions.length;
    });
    return transactions.map((transaction) => answered.get(transaction) as CreatedTransaction);
  }

  private noteRefusal(refusal: Refusal): void {
    if (!REPEATABLE.has(refusal.code)) throw new Error(JSON.stringify(refusal));
    this.refusals.push(refusal);
  }

  private repeat<T>(ask: (client: FencepostClient) => Promise<T>): Promise<T & {}> {
    const look = async () => {
      const client = this.current();
      if (client === null) return null;
      try {
        const answer = await ask(client);
        this.onAnswer();
        return answer;
      } catch (error) {
        if (!isRepeatable(error)) throw error;
        this.refusals.push(error);
        return null;
      }
    };
    return waitUntil(look, "a node takes the request", { everyMs: this.everyMs, giveUpMs: GIVE_UP_MS });
  }
}
