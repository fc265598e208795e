import type { Worker } from "node:worker_threads";

/** What travels to a worker and back. Anything else that a worker says is for whoever listens to it directly. */
export interface WorkerQuestion<Q> {
  readonly id: number;
  readonly question: Q;
}

export type WorkerReply<A> =
  | { readonly id: number; readonly answer: A }
  | { readonly id: number; readonly error: string };

export interface WorkerThreadOptions {
  /** For people: "the signing thread". */
  readonly name: string;
  readonly start: () => Worker;
  readonly failure: (message: string, options?: ErrorOptions) => Error;
}

interface Pending<A> {
  readonly resolve: (answer: A) => void;
  readonly reject: (error: Error) => void;
}

/**
 * One worker thread and what it owes. A thread that dies takes its unanswered questions with it (they reject) and the
 * next question starts another: a crash at start can therefore never spin.
 */
export class WorkerThread<Q, A> {
  readonly #options: WorkerThreadOptions;
  readonly #pending = new Map<number, Pending<A>>();
  #worker: Worker | null = null;
  #nextId = 0;
  #closed = false;

  constructor(options: WorkerThreadOptions) {
    this.#options = options;
  }

  /** The thread, started where it is not running: for what it says by itself. */
  worker(): Worker {
    return this.#worker ?? this.#begin();
  }

  ask(question: Q): Promise<A> {
    const { name, failure } = this.#options;
    if (this.#closed) return Promise.reject(failure(`${name} is closed`));
    const worker = this.worker();
    return new Promise((resolve, reject) => {
      const asked: WorkerQuestion<Q> = { id: this.#nextId++, question };
      // Throws for what cannot be cloned, before anything is owed.
      worker.postMessage(asked);
      this.#pending.set(asked.id, { resolve, reject });
      // Alive while work is owed, and no longer: an idle thread must not keep a process from ending.
      worker.ref();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    this.#worker = null;
    this.#abandon(this.#options.failure(`${this.#options.name} was closed before it had answered`));
    await worker?.terminate();
  }

  #begin(): Worker {
    const worker = this.#options.start();
    this.#worker = worker;
    let cause: unknown;
    worker.unref();
    worker.on("message", (message: WorkerReply<A> | object) => this.#receive(worker, message));
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", (code) => this.#lose(worker, code, cause));
    return worker;
  }

  #receive(worker: Worker, message: WorkerReply<A> | object): void {
    if (!("id" in message)) return;
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    this.#pending.delete(message.id);
    if (this.#pending.size === 0) worker.unref();
    if ("answer" in message) pending.resolve(message.answer);
    else pending.reject(this.#options.failure(`${this.#options.name} failed: ${message.error}`));
  }

  #lose(worker: Worker, code: number, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    const why = cause instanceof Error ? cause.message : `exit code ${code}`;
    const { name, failure } = this.#options;
    this.#abandon(failure(`${name} ended (${why}); the next request starts another`, { cause }));
  }

  #abandon(error: Error): void {
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
  }
}
