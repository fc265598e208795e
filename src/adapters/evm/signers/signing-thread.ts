import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { UnsignedTransaction } from "../../../domain/transaction.ts";
import type { SignedTransaction } from "../../../ports/signer.ts";
import { WorkerThread } from "../threads/worker-thread.ts";
import { SigningFailed } from "./errors.ts";
import { encodeTransaction } from "./worker/serialise.js";
import type { Signed, SignRequest, WorkerData } from "./worker/sign-worker.js";

export type StartWorker = (data: WorkerData) => Worker;

export const startSignWorker: StartWorker = (data) =>
  new Worker(new URL("./worker/sign-worker.js", import.meta.url), { workerData: data, name: "fencepost-sign" });

export type CurveKind = "wasm" | "javascript";

/** One worker thread that signs. Where it dies, nothing of what it owed was sent, so nothing is lost. */
export class SigningThread {
  readonly #thread: WorkerThread<SignRequest, readonly Signed[]>;
  #load = 0;

  constructor(data: WorkerData, start: StartWorker) {
    this.#thread = new WorkerThread({
      name: "the signing thread",
      start: () => start(data),
      failure: (message, options) => new SigningFailed(message, options),
    });
  }

  /** Transactions under way: how threads are compared. */
  get load(): number {
    return this.#load;
  }

  /** Starts the thread ahead of the first request; says what it will sign with. */
  async start(): Promise<CurveKind> {
    try {
      const worker = this.#thread.worker();
      worker.ref();
      const [{ ready }] = (await once(worker, "message")) as [{ readonly ready: CurveKind }];
      worker.unref();
      return ready;
    } catch (cause) {
      throw new SigningFailed("the signing thread cannot be started", { cause });
    }
  }

  async sign(key: number, transactions: readonly UnsignedTransaction[]): Promise<readonly SignedTransaction[]> {
    this.#load += transactions.length;
    try {
      const signed = await this.#thread.ask([key, transactions.map(encodeTransaction)]);
      return signed.map(([rawTransaction, txHash]) => ({ rawTransaction, txHash }));
    } finally {
      this.#load -= transactions.length;
    }
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}
