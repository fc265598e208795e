/** A client of server-sent events over a plain HTTP connection, which can also stop reading. */
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { waitUntil } from "./wait-until.ts";

export interface ServerEvent {
  readonly id: string | null;
  /** Name of the event; null for an id alone. */
  readonly event: string | null;
  readonly data: Readonly<Record<string, unknown>> | null;
}

export class EventReader {
  readonly response: IncomingMessage;
  text = "";
  /** True once the connection has ended, in whatever way. */
  isClosed = false;
  private readonly asked: ClientRequest;

  constructor(asked: ClientRequest, response: IncomingMessage) {
    this.asked = asked;
    this.response = response;
    response.setEncoding("utf8");
    response.on("data", (text: string) => {
      this.text += text;
    });
    response.on("close", () => {
      this.isClosed = true;
    });
    response.on("error", () => undefined);
  }

  get events(): readonly ServerEvent[] {
    return this.text
      .split("\n\n")
      .slice(0, -1)
      .map((block) => {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? null;
        const data = field("data");
        return { id: field("id"), event: field("event"), data: data === null ? null : JSON.parse(data) };
      });
  }

  /** The sequence numbers of all outcomes received. */
  get seqs(): readonly number[] {
    return this.events.flatMap(({ event, data }) => (event === "completion" ? [Number(data?.seq)] : []));
  }

  /** Waits for the given number of events, and returns the last one. */
  async event(count: number): Promise<ServerEvent> {
    await waitUntil(() => this.events.length >= count || this.isClosed, `event ${count} arrives`);
    return this.events[count - 1] as ServerEvent;
  }

  async closed(): Promise<void> {
    await waitUntil(() => this.isClosed, "the stream ends");
  }

  /** Stops reading: TCP then stops the sender, once all buffers between are full. */
  pause(): void {
    this.response.pause();
  }

  resume(): void {
    this.response.resume();
  }

  /** Disconnects without reading the rest. */
  leave(): void {
    this.asked.destroy();
  }
}

interface Asking {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends the request and resolves when the response begins, whatever its status. */
export function readEvents(url: string, { method = "GET", headers = {} }: Asking = {}): Promise<EventReader> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers, agent: false });
    asked.on("error", reject);
    asked.on("response", (response) => resolve(new EventReader(asked, response)));
    asked.end();
  });
}
