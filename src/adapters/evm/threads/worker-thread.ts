import type { Worker } from "node:worker_threads";

/**
 * Messages to and from a worker, in lists. Other messages of a worker go to its own listeners. They are tuples, because
 * receiving an object with named members takes three times as long.
 */
export type WorkerQuestion<Q> = readonly [id: number, question: Q];
export type WorkerReply<A> = readonly [id: number, answer: A] | readonly [id: number, answer: undefined, error: string];

export interface WorkerThreadOptions {
  /** Name for messages, such as "the signing thread". */
  readonly name: string;
  readonly start: () => Worker;
  readonly failure: (message: string, options?: ErrorOptions) => Error;
}

interface Pending<A> {
  readonly resolve: (answer: A) => void;
  readonly reject: (error: Error) => void;
}

/**
 * One worker thread and its pending questions. Questions of one tick are sent as one message: for a signature the
 * transfer costs a third of the work. If the thread dies, its pending questions reject, and the next question starts
 * another thread, so a crash at start cannot loop.
 */
export class WorkerThread<Q, A> {
  readonly #options: WorkerThreadOptions;
  readonly #pending = new Map<number, Pending<A>>();
  #outgoing: WorkerQuestion<Q>[] = [];
  #worker: Worker | null = null;
  #nextId = 0;
  #closed = false;

  constructor(options: WorkerThreadOptions) {
    this.#options = options;
  }

  /** The worker, started if it is not running: for messages that it sends on its own. */
  worker(): Worker {
    return this.#worker ?? this.#begin();
  }

  ask(question: Q): Promise<A> {
    const { name, failure } = this.#options;
    if (this.#closed) return Promise.reject(failure(`${name} is closed`));
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#pending.set(id, { resolve, reject });
      if (this.#outgoing.push([id, question]) === 1) queueMicrotask(() => this.#flush());
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    this.#worker = null;
    this.#abandon(this.#options.failure(`${this.#options.name} was closed before it had answered`));
    await worker?.terminate();
  }

  #flush(): void {
    const questions = this.#outgoing.filter(([id]) => this.#pending.has(id));
    this.#outgoing = [];
    if (questions.length === 0) return;
    try {
      const worker = this.worker();
      // Throws if a question cannot be cloned; then nothing was sent.
      worker.postMessage(questions);
      // Referenced only while work is pending: an idle thread must not keep the process alive.
      worker.ref();
    } catch (cause) {
      const { name, failure } = this.#options;
      const error = failure(`${name} cannot be asked`, { cause });
      for (const [id] of questions) this.#settle(id)?.reject(error);
    }
  }

  #begin(): Worker {
    const worker = this.#options.start();
    this.#worker = worker;
    let cause: unknown;
    worker.unref();
    worker.on("message", (message: readonly WorkerReply<A>[] | object) => this.#receive(worker, message));
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", (code) => this.#lose(worker, code, cause));
    return worker;
  }

  #receive(worker: Worker, message: readonly WorkerReply<A>[] | object): void {
    if (!Array.isArray(message)) return;
    for (const reply of message as readonly WorkerReply<A>[]) {
      const pending = this.#settle(reply[0]);
      if (reply.length === 2) pending?.resolve(reply[1]);
      else pending?.reject(this.#options.failure(`${this.#options.name} failed: ${reply[2]}`));
    }
    if (this.#pending.size === 0) worker.unref();
  }

  /** Removes a pending question. */
  #settle(id: number): Pending<A> | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
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
