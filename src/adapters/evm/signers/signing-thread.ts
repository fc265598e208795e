import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { UnsignedTransaction } from "../../../domain/transaction.ts";
import type { SignedTransaction } from "../../../ports/signer.ts";
import { SigningFailed } from "./errors.ts";
import type { SignReply, SignRequest, WorkerData } from "./worker/sign-worker.js";

export type StartWorker = (data: WorkerData) => Worker;

export const startSignWorker: StartWorker = (data) =>
  new Worker(new URL("./worker/sign-worker.js", import.meta.url), { workerData: data, name: "fencepost-sign" });

interface Pending {
  readonly size: number;
  readonly resolve: (signed: readonly SignedTransaction[]) => void;
  readonly reject: (error: Error) => void;
}

export type CurveKind = "wasm" | "javascript";
type Message = readonly SignReply[] | { readonly ready: CurveKind };

/**
 * One worker thread and what it owes. What is asked for in one tick, whatever the key, crosses over as one message: the
 * crossing costs as much as a third of a signature. A thread that dies takes its unanswered requests with it (they reject; nothing
 * was sent, so nothing is lost) and the next request starts another: a crash at start can therefore never spin.
 */
export class SigningThread {
  readonly #data: WorkerData;
  readonly #start: StartWorker;
  readonly #pending = new Map<number, Pending>();
  #outgoing: SignRequest[] = [];
  #worker: Worker | null = null;
  #nextId = 0;
  #closed = false;
  #load = 0;

  constructor(data: WorkerData, start: StartWorker) {
    this.#data = data;
    this.#start = start;
  }

  /** Transactions under way: how threads are compared. */
  get load(): number {
    return this.#load;
  }

  /** Starts the thread ahead of the first request; says what it will sign with. */
  async start(): Promise<CurveKind> {
    try {
      const worker = this.#begin();
      worker.ref();
      const [{ ready }] = (await once(worker, "message")) as [{ readonly ready: CurveKind }];
      worker.unref();
      return ready;
    } catch (cause) {
      throw new SigningFailed("the signing thread cannot be started", { cause });
    }
  }

  sign(key: number, transactions: readonly UnsignedTransaction[]): Promise<readonly SignedTransaction[]> {
    if (this.#closed) return Promise.reject(new SigningFailed("the signer is closed"));
    return new Promise((resolve, reject) => {
      const request: SignRequest = { id: this.#nextId++, key, transactions };
      this.#pending.set(request.id, { size: transactions.length, resolve, reject });
      this.#load += transactions.length;
      if (this.#outgoing.push(request) === 1) queueMicrotask(() => this.#flush());
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    this.#worker = null;
    this.#abandon(new SigningFailed("the signer was closed before it had signed"));
    await worker?.terminate();
  }

  #flush(): void {
    const requests = this.#outgoing.filter(({ id }) => this.#pending.has(id));
    this.#outgoing = [];
    if (requests.length === 0) return;
    try {
      const worker = this.#worker ?? this.#begin();
      // Alive while work is owed, and no longer: an idle signer must not keep a process from ending.
      worker.ref();
      worker.postMessage(requests);
    } catch (cause) {
      const error = new SigningFailed("the signing thread cannot be asked", { cause });
      for (const { id } of requests) this.#settle(id)?.reject(error);
    }
  }

  #begin(): Worker {
    const worker = this.#start(this.#data);
    this.#worker = worker;
    let cause: unknown;
    worker.unref();
    worker.on("message", (message: Message) => this.#receive(worker, message));
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", (code) => this.#lose(worker, code, cause));
    return worker;
  }

  #receive(worker: Worker, message: Message): void {
    if ("ready" in message) return;
    for (const reply of message) {
      const pending = this.#settle(reply.id);
      if ("signed" in reply) pending?.resolve(reply.signed);
      else pending?.reject(new SigningFailed(`signing failed: ${reply.error}`));
    }
    if (this.#pending.size === 0) worker.unref();
  }

  /** No longer owed. */
  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    this.#load -= pending?.size ?? 0;
    return pending;
  }

  #lose(worker: Worker, code: number, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    const why = cause instanceof Error ? cause.message : `exit code ${code}`;
    this.#abandon(new SigningFailed(`the signing thread ended (${why}); the next request starts another`, { cause }));
  }

  #abandon(error: SigningFailed): void {
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
    this.#load = 0;
  }
}
