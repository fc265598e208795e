import type { Worker, WorkerOptions } from "node:worker_threads";
import { pendingRequests } from "./pending.ts";

/**
 * Questions to a worker thread and its replies, sent in lists. A message that is not a list is ignored here and left to
 * other listeners of the worker. Questions and replies are tuples, because receiving an object with named members takes
 * three times as long.
 */
export type WorkerQuestion<Q> = readonly [id: number, question: Q];
export type WorkerReply<A> = readonly [id: number, answer: A] | readonly [id: number, answer: undefined, error: string];

interface WorkerThreadOptions {
  /** Name of the thread in messages, such as "the signing thread". */
  readonly name: string;
  readonly start: () => Worker;
  readonly failure: (message: string, options?: ErrorOptions) => Error;
}

/**
 * Options of a new thread. A thread inherits the Node options of its process, and Node refuses to load a file with
 * `--input-type`, the option of `node --input-type=module -e`. Without it, no options are passed: Node refuses V8's.
 */
export function threadOptions(): Pick<WorkerOptions, "execArgv"> {
  return process.execArgv.some((option) => option.startsWith("--input-type")) ? { execArgv: [] } : {};
}

/**
 * One worker thread and its pending questions. Questions of one tick are sent as one message, because for a signature
 * the transfer costs a third of the work. If the thread dies, its pending questions reject. Only the next question
 * starts another thread, so a crash at start cannot loop.
 */
export function workerThread<Q, A>({ name, start, failure }: WorkerThreadOptions) {
  const pending = pendingRequests<A>();
  let outgoing: WorkerQuestion<Q>[] = [];
  let current: Worker | null = null;
  let closed = false;

  function begin() {
    const worker = start();
    let cause: unknown;
    worker.unref();
    worker.on("message", (message: readonly WorkerReply<A>[] | object) => {
      for (const reply of Array.isArray(message) ? (message as readonly WorkerReply<A>[]) : []) {
        if (reply.length === 2) pending.take(reply[0])?.resolve(reply[1]);
        else pending.take(reply[0])?.reject(failure(`${name} failed: ${reply[2]}`));
      }
      if (pending.size() === 0) worker.unref();
    });
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", (code) => {
      if (current !== worker) return;
      current = null;
      const why = cause instanceof Error ? cause.message : `exit code ${code}`;
      pending.abandon(failure(`${name} ended (${why}); the next request starts a new one`, { cause }));
    });
    current = worker;
    return worker;
  }

  function flush() {
    const questions = outgoing.filter(([id]) => pending.has(id));
    outgoing = [];
    if (questions.length === 0) return;
    try {
      const worker = current ?? begin();
      // `postMessage` throws if a question cannot be cloned; then nothing was sent.
      worker.postMessage(questions);
      // Reference the thread only while questions are pending: an idle thread must not keep the process alive.
      worker.ref();
    } catch (cause) {
      const error = failure(`the request could not be passed to ${name}`, { cause });
      for (const [id] of questions) pending.take(id)?.reject(error);
    }
  }

  return {
    /**
     * Returns the worker, and starts it if it is not running. Used to receive messages that the worker sends on its
     * own.
     */
    worker: () => current ?? begin(),
    ask: async (question: Q) => {
      if (closed) throw failure(`${name} is closed`);
      return pending.add((id) => {
        if (outgoing.push([id, question]) === 1) queueMicrotask(flush);
      });
    },
    close: async () => {
      closed = true;
      const worker = current;
      current = null;
      pending.abandon(failure(`${name} was closed before it answered the request`));
      await worker?.terminate();
    },
  };
}
