// @ts-check
import { parentPort } from "node:worker_threads";

/**
 * The worker's side of worker-thread.ts: every question gets an answer, or the words of the error it met. Says `hello`
 * first, where there is something to say.
 *
 * @template Q, A
 * @param {(question: Q) => A | Promise<A>} answer
 * @param {object} [hello]
 */
export function serve(answer, hello) {
  const port = parentPort;
  if (port === null) throw new Error("this runs as a worker thread only");
  port.on("message", async (/** @type {import("./worker-thread.ts").WorkerQuestion<Q>} */ { id, question }) => {
    port.postMessage(await reply(id, question));
  });
  if (hello !== undefined) port.postMessage(hello);

  /**
   * @param {number} id
   * @param {Q} question
   * @returns {Promise<import("./worker-thread.ts").WorkerReply<A>>}
   */
  async function reply(id, question) {
    try {
      return { id, answer: await answer(question) };
    } catch (error) {
      return { id, error: error instanceof Error ? error.message : String(error) };
    }
  }
}
