/** Many callers, each on a separate connection, that retry refused requests until they are accepted. */
import { Agent, type IncomingMessage, request } from "node:http";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { CreateTransaction } from "../../../src/client/index.ts";
import { waitUntil } from "../wait-until.ts";

/** Status codes that callers retry: 0 (no response at all), and those that ask the caller to retry later. */
const LATER = new Set([0, 409, 429, 503]);
const GIVE_UP_MS = 120_000;

export interface Served {
  /** Time of acceptance, on this process's monotonic clock. */
  readonly atMs: number;
  /** Messages of the refusals that the request got before it was accepted. */
  readonly refusals: readonly string[];
}

export class InsistentCallers {
  private readonly url: URL;
  private readonly everyMs: number;
  private readonly agent: Agent;

  constructor(url: string, everyMs: number) {
    this.url = new URL("/api/v1/tx", url);
    this.everyMs = everyMs;
    this.agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, scheduling: "fifo" });
  }

  /** Sends all requests at once; resolves when the last one is accepted. */
  send(transactions: readonly CreateTransaction[]): Promise<readonly Served[]> {
    return Promise.all(transactions.map((transaction) => this.insist(JSON.stringify(transaction))));
  }

  close(): void {
    this.agent.destroy();
  }

  private insist(body: string): Promise<Served> {
    const refusals: string[] = [];
    const look = async (): Promise<Served | null> => {
      const { status, text } = await this.post(body).catch((error: Error) => ({ status: 0, text: error.message }));
      if (status === 200 || status === 202) return { atMs: systemClock.monotonicMs(), refusals };
      if (!LATER.has(status)) throw new Error(`${status}: ${text}`);
      refusals.push(`${status}: ${text}`);
      return null;
    };
    return waitUntil(look, "a caller is served", { everyMs: this.everyMs, giveUpMs: GIVE_UP_MS });
  }

  private post(body: string): Promise<{ readonly status: number; readonly text: string }> {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const sent = request(this.url, { method: "POST", agent: this.agent, headers }, (response) => {
        readAll(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject);
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }
}

async function readAll(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk as string;
  return text;
}
