// @ts-check
import { parentPort } from "node:worker_threads";

/**
 * The worker collects light answers and sends them together. Once their total weight reaches this number, they are sent
 * at once.
 */
const ENOUGH = 64;

/**
 * Worker's side of worker-thread.ts: answers each question, or returns the message of the error. Sends `hello` first,
 * if given. Answers to questions that `weigh` rates as light are collected and sent together; without `weigh` each is
 * sent alone.
 *
 * @template Q, A
 * @param {(question: Q) => A | Promise<A>} answer
 * @param {{ readonly hello?: object, readonly weigh?: (question: Q) => number }} [options]
 */
export function serve(answer, { hello, weigh = () => ENOUGH } = {}) {
  const port = parentPort;
  if (port === null) throw new Error("this module must run in a worker thread");
  port.on("message", async (/** @type {readonly import("./worker-thread.ts").WorkerQuestion<Q>[]} */ questions) => {
    /** @type {import("./worker-thread.ts").WorkerReply<A>[]} */
    let replies = [];
    let weight = 0;
    for (const [id, question] of questions) {
      replies.push(await reply(id, question));
      weight += weigh(question);
      if (weight < ENOUGH) continue;
      port.postMessage(replies);
      replies = [];
      weight = 0;
    }
    if (replies.length > 0) port.postMessage(replies);
  });
  if (hello !== undefined) port.postMessage(hello);

  /**
   * Answers one question. An error becomes part of the reply.
   *
   * @param {number} id
   * @param {Q} question
   * @returns {Promise<import("./worker-thread.ts").WorkerReply<A>>}
   */
  async function reply(id, question) {
    try {
      return [id, await answer(question)];
    } catch (error) {
      return [id, undefined, error instanceof Error ? error.message : String(error)];
    }
  }
}
