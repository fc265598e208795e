import { Agent, request } from "undici";
import { codeOf } from "../../../../domain/text/thrown.ts";
import type { Clock } from "../../../../ports/clock.ts";
import { SignerAway } from "../../../../ports/signer.ts";
import type { Warn } from "../secret-file.ts";

export interface ServiceRequest {
  readonly method: "GET" | "POST" | "PUT";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Shorter for a server that may not exist. */
  readonly timeoutMs?: number;
}

export type ServiceHttp = ReturnType<typeof openServiceHttp>;
export type ServiceAnswer = Awaited<ReturnType<ServiceHttp["ask"]>>;

export type Environment = Readonly<Record<string, string | undefined>>;

export interface SignerPorts {
  readonly clock: Clock;
  /** Regions, credentials and addresses of key services, under the names that their own tools read. */
  readonly environment: Environment;
  readonly warn?: Warn | undefined;
}

export interface ServicePorts extends SignerPorts {
  readonly http: ServiceHttp;
}

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 256 * 1024;

/** HTTP for the REST interfaces of key services. Redirects are not followed: credentials must reach no other host. */
export function openServiceHttp(clock: Clock) {
  const agent = new Agent({ connections: 16, maxResponseSize: MAX_ANSWER_BYTES, headersTimeout: 0, bodyTimeout: 0 });
  return {
    /** Resolves with any status. Throws `SignerAway`, which names only the host, if there is no answer. */
    async ask({ method, url, headers = {}, body, timeoutMs = TIMEOUT_MS }: ServiceRequest) {
      const deadline = new AbortController();
      const cancelTimer = clock.after(timeoutMs, () => deadline.abort());
      const { origin } = new URL(url);
      try {
        const options = { method, headers, dispatcher: agent, signal: deadline.signal };
        const answer = await request(url, body === undefined ? options : { ...options, body });
        return { status: answer.statusCode, text: await answer.body.text() };
      } catch (cause) {
        const failure = `is not reachable (${codeOf(cause) ?? "connection failed"})`;
        const why = deadline.signal.aborted ? `gave no answer in ${timeoutMs} ms` : failure;
        throw new SignerAway(`${origin} ${why}`, { cause });
      } finally {
        cancelTimer();
      }
    },
    close: () => agent.destroy(),
  };
}

/** Members of a JSON object; empty for any other text. */
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
