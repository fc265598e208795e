import { Agent, request } from "undici";
import type { Clock } from "../../../../ports/clock.ts";
import { SignerAway } from "../../../../ports/signer.ts";

export interface ServiceRequest {
  readonly method: "GET" | "POST" | "PUT";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Short for what may not be there at all. */
  readonly timeoutMs?: number;
}

export interface ServiceAnswer {
  readonly status: number;
  /** As it came. */
  readonly text: string;
}

export interface ServiceHttp {
  /** Any status. Throws `SignerAway`, which names the host and no more, where there is no answer. */
  ask(asked: ServiceRequest): Promise<ServiceAnswer>;
  close(): Promise<void>;
}

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 256 * 1024;

/** For the REST interfaces of key services. Redirects are not followed: what is asked for one place goes to no other. */
export function openServiceHttp(clock: Clock): ServiceHttp {
  const agent = new Agent({ connections: 16, maxResponseSize: MAX_ANSWER_BYTES, headersTimeout: 0, bodyTimeout: 0 });
  return {
    async ask({ method, url, headers = {}, body, timeoutMs = TIMEOUT_MS }) {
      const deadline = new AbortController();
      const cancelTimer = clock.after(timeoutMs, () => deadline.abort());
      const { origin } = new URL(url);
      try {
        const options = { method, headers, dispatcher: agent, signal: deadline.signal };
        const answer = await request(url, body === undefined ? options : { ...options, body });
        return { status: answer.statusCode, text: await answer.body.text() };
      } catch (cause) {
        const code = cause instanceof Error && "code" in cause ? String(cause.code) : "connection failed";
        const why = deadline.signal.aborted ? `gave no answer in ${timeoutMs} ms` : `is not reachable (${code})`;
        throw new SignerAway(`${origin} ${why}`, { cause });
      } finally {
        cancelTimer();
      }
    },
    close: () => agent.destroy(),
  };
}

/** The members of a JSON object; none where it is something else. */
export function membersOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
