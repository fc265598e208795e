import type { CreatedTransaction, CreateTransaction } from "../../src/client/index.ts";
import type { PersistentCaller } from "./persistent-caller.ts";

/** Callers that send requests until they are stopped. */
export interface Load {
  /** The accepted requests (2xx) so far. */
  readonly accepted: readonly CreatedTransaction[];
  /** Stops sending; resolves when every request in flight has its response. */
  stop(): Promise<void>;
}

export interface LoadOptions {
  readonly caller: PersistentCaller;
  readonly request: (index: number) => CreateTransaction;
  readonly workers: number;
  /** Number of requests that every third worker sends at once. */
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
  // If a request fails, the test gets the error when it stops the load. Until then, avoid an unhandled rejection.
  working.catch(() => undefined);
  return {
    accepted,
    stop: async () => {
      wanted = false;
      await working;
    },
  };
}
