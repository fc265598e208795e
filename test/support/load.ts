import type { CreatedTransaction, CreateTransaction } from "../../src/client/index.ts";
import type { PersistentCaller } from "./persistent-caller.ts";

/** Callers at work until they are stopped. */
export interface Load {
  /** The 2xx answers so far. */
  readonly accepted: readonly CreatedTransaction[];
  /** No new requests; resolves when each of those under way has its answer. */
  stop(): Promise<void>;
}

export interface LoadOptions {
  readonly caller: PersistentCaller;
  readonly request: (index: number) => CreateTransaction;
  readonly workers: number;
  /** Every third worker sends so many at once. */
  readonly batch: number;
}

export function startLoad({ caller, request, workers, batch }: LoadOptions): Load {
  const accepted: CreatedTransaction[] = [];
  let index = 0;
  let wanted = true;
  const work = async (worker: number): Promise<void> => {
    while (wanted) {
      if (worker % 3 === 0)
        accepted.push(...(await caller.sendBatch(Array.from({ length: batch }, () => request(index++)))));
      else accepted.push(await caller.send(request(index++)));
    }
  };
  const working = Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
  // The error reaches the test that stops the load.
  working.catch(() => undefined);
  return {
    accepted,
    stop: async () => {
      wanted = false;
      await working;
    },
  };
}
