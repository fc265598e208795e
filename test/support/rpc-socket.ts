import { WebSocket } from "undici";

interface Said {
  readonly id?: unknown;
  readonly method?: string;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
  readonly params?: { readonly subscription: string; readonly result: Readonly<Record<string, unknown>> };
}

/** A client's WebSocket to a node's `/rpc`. */
export class TestSocket {
  readonly received: Said[] = [];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  private readonly socket: WebSocket;
  private waiting: (() => void)[] = [];
  private lastId = 0;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.addEventListener("message", ({ data }) => {
      this.received.push(JSON.parse(String(data)) as Said);
      for (const look of this.waiting.splice(0)) look();
    });
    this.closed = new Promise((resolve) => {
      socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason }));
    });
  }

  /** Opens a socket; rejects if the connection is refused. */
  static async open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<TestSocket> {
    const socket = new WebSocket(url.replace(/^http/, "ws"), { headers });
    const own = new TestSocket(socket);
    return new Promise((resolve, reject) => {
      socket.addEventListener("open", () => resolve(own));
      socket.addEventListener("error", () => reject(new Error("it was refused")));
    });
  }

  say(text: string | Uint8Array): void {
    this.socket.send(text);
  }

  async call(method: string, params: readonly unknown[] = []): Promise<Said> {
    const id = ++this.lastId;
    this.say(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return this.until((said) => said.id === id);
  }

  async until(fits: (said: Said) => boolean): Promise<Said> {
    for (;;) {
      const found = this.received.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => void this.waiting.push(resolve));
    }
  }

  close(): void {
    this.socket.close();
  }
}
