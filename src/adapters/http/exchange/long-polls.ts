import type { ServerResponse } from "node:http";

/** Long polls. They end when their client disconnects, or all together when the node drains. */
export class LongPolls {
  readonly #waiting = new Set<AbortController>();
  #draining = false;

  get draining(): boolean {
    return this.#draining;
  }

  /** Runs `poll` with a signal that aborts when the response's connection closes, or when the node drains. */
  async hold<T>(response: ServerResponse, poll: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const abort = () => controller.abort();
    response.once("close", abort);
    this.#waiting.add(controller);
    if (this.#draining || response.destroyed) abort();
    try {
      return await poll(controller.signal);
    } finally {
      this.#waiting.delete(controller);
      response.off("close", abort);
    }
  }

  drain(): void {
    this.#draining = true;
    for (const controller of this.#waiting) controller.abort();
  }
}
