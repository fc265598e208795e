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
type Message = SignReply | { readonly ready: CurveKind };

/**
 * One worker thread and what it owes. A thread that dies takes its unanswered requests with it (they reject; nothing
 * was sent, so nothing is lost) and the next request starts another: a crash at start can therefore never spin.
 */
export class SigningThread {
  readonly #data: WorkerData;
  readonly #start: StartWorker;
  readonly #pending = new Map<number, Pending>();
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
    const worker = this.#worker ?? this.#begin();
    return new Promise((resolve, reject) => {
      const request: SignRequest = { id: this.#nextId++, key, transactions };
      // Throws for what cannot be cloned, before anything is owed.
      worker.postMessage(request);
      this.#pending.set(request.id, { size: transactions.length, resolve, reject });
      this.#load += transactions.length;
      // Alive while work is owed, and no longer: an idle signer must not keep a process from ending.
      worker.ref();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    this.#worker = null;
    this.#abandon(new SigningFailed("the signer was closed before it had signed"));
    await worker?.terminate();
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
    if (!("id" in message)) return;
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    this.#pending.delete(message.id);
    this.#load -= pending.size;
    if (this.#pending.size === 0) worker.unref();
    if ("signed" in message) pending.resolve(message.signed);
    else pending.reject(new SigningFailed(`signing failed: ${message.error}`));
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
