import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

const HEADERS_END = "\r\n\r\n";
const STATUS_AT = "HTTP/1.1 ".length;

/**
 * A keep-alive HTTP connection, one request at a time, that does next to nothing: client and server share two cores, and
 * what the client spends is missing in what is measured. Bodies must come with a content length.
 */
export class Connection {
  private readonly url: URL;
  /** `url.host` would be put together anew for each request. */
  private readonly host: string;
  private socket: Socket;
  private waiting: Waiting | null = null;
  private received: Buffer = Buffer.alloc(0);

  private constructor(url: URL, socket: Socket) {
    this.url = url;
    this.host = url.host;
    this.socket = this.listening(socket);
  }

  static async open(url: string): Promise<Connection> {
    const to = new URL(url);
    return new Connection(to, await connected(to));
  }

  static openAll(url: string, count: number): Promise<readonly Connection[]> {
    return Promise.all(Array.from({ length: count }, () => Connection.open(url)));
  }

  post(path: string, body: string): Promise<Answer> {
    const length = Buffer.byteLength(body);
    return this.exchange(
      `POST ${path} HTTP/1.1\r\nhost: ${this.host}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`,
    );
  }

  get(path: string): Promise<Answer> {
    return this.exchange(`GET ${path} HTTP/1.1\r\nhost: ${this.host}\r\n\r\n`);
  }

  close(): void {
    this.socket.destroy();
  }

  private async exchange(request: string): Promise<Answer> {
    // The server closes a connection that is idle for long.
    if (this.socket.destroyed) this.socket = this.listening(await connected(this.url));
    return new Promise((resolve, reject) => {
      if (this.waiting !== null) return reject(new Error("one request at a time"));
      this.waiting = { resolve, reject };
      this.socket.write(request);
    });
  }

  private listening(socket: Socket): Socket {
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("error", (error) => this.fail(error));
    socket.on("close", () => this.fail(new Error("the server closed the connection")));
    return socket;
  }

  private receive(chunk: Buffer): void {
    this.received = this.received.length === 0 ? chunk : Buffer.concat([this.received, chunk]);
    const headersEnd = this.received.indexOf(HEADERS_END);
    if (headersEnd === -1) return;
    const headers = this.received.toString("latin1", 0, headersEnd);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(headers)?.[1] ?? 0);
    const end = headersEnd + HEADERS_END.length + length;
    if (this.received.length < end) return;
    const body = this.received.toString("utf8", end - length, end);
    this.received = this.received.subarray(end);
    const { waiting } = this;
    this.waiting = null;
    waiting?.resolve({ status: Number(headers.slice(STATUS_AT, STATUS_AT + 3)), body });
  }

  private fail(error: Error): void {
    this.waiting?.reject(error);
    this.waiting = null;
  }
}

async function connected({ hostname, port }: URL): Promise<Socket> {
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  return socket;
}
