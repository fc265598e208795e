import { connect, createServer, type Server, type Socket } from "node:net";
import { systemClock } from "../../src/adapters/system/clock.ts";

/** What happens to the client's COMMIT: it is lost, it is held back, or it is delivered and its response is lost. */
export type CommitFault = "cut-before" | "stall-before" | "cut-after" | "hold-answer";

interface Hold {
  readonly text: string;
  /** Returns the position of the first byte to hold back. */
  readonly from: (bytes: Buffer) => number;
  readonly hit: (release: () => void) => void;
}

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  /** Handles the server's bytes. */
  answer: (bytes: Buffer) => void;
}

interface Fault {
  readonly fault: CommitFault;
  readonly hit: () => void;
}

/** The server's response to a COMMIT: "COMMIT" if it was carried out, "ROLLBACK" if there was nothing to commit. */
const DONE = "COMMIT\0";
const UNDONE = "ROLLBACK\0";

/**
 * A proxy between a PostgreSQL client and its server that a test can break. COMMIT is sent as text each time, so it is
 * found in the bytes.
 */
export class TcpProxy {
  readonly port: number;
  /** The server's port for new connections; a test may change it. */
  upstreamPort: number;
  private readonly server: Server;
  private readonly pairs = new Set<Pair>();
  private readonly faults: Fault[] = [];
  private readonly spoils: { readonly text: string; readonly by: string; readonly hit: () => void }[] = [];
  private readonly holds: Hold[] = [];
  private readonly delays: ((deliver: () => Promise<void>) => void)[] = [];
  /** Number of refused connections. */
  refused = 0;
  private refusing = false;
  private frozen = false;
  private trips = 0;
  private lateMs = 0;

  private constructor(server: Server, port: number, upstreamPort: number) {
    this.server = server;
    this.port = port;
    this.upstreamPort = upstreamPort;
  }

  static async start(upstreamPort: number): Promise<TcpProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy has no port");
    const proxy = new TcpProxy(server, address.port, upstreamPort);
    server.on("connection", (client) => proxy.accept(client));
    return proxy;
  }

  /** The URL of the same database through this proxy. */
  through(databaseUrl: string): string {
    const url = new URL(databaseUrl);
    url.hostname = "127.0.0.1";
    url.port = String(this.port);
    return url.href;
  }

  /** Number of round trips. One begins with a client's first bytes, and with its first bytes after each response. */
  get roundTrips(): number {
    return this.trips;
  }

  /** Number of connected clients. */
  get connections(): number {
    return this.pairs.size;
  }

  /** Applies a fault to the next COMMIT; resolves when the fault has happened. */
  atNextCommit(fault: CommitFault): Promise<void> {
    return new Promise((hit) => this.faults.push({ fault, hit }));
  }

  /**
   * Disconnects the client at its next COMMIT but keeps the bytes, as a slow network would. Resolves with a function
   * that delivers the bytes to the server, and that resolves when the server has read them and closed the connection.
   */
  delayNextCommit(): Promise<() => Promise<void>> {
    return new Promise((hit) => this.delays.push((deliver) => hit(deliver)));
  }

  /**
   * Holds back the next client bytes that contain this text, and all bytes after them. Resolves with a function that
   * releases them.
   */
  holdAt(text: string): Promise<() => void> {
    return new Promise((hit) => this.holds.push({ text, from: () => 0, hit }));
  }

  /**
   * Delivers the bytes before the next use of this statement and holds back the rest, as if the client stopped sending.
   */
  holdFrom(statement: string): Promise<() => void> {
    // In a Bind message, the statement's name follows the type (one byte), the length (four bytes) and an empty portal
    // name.
    const from = (bytes: Buffer) => bytes.indexOf(`\0${statement}\0`) - 5;
    return new Promise((hit) => this.holds.push({ text: `\0${statement}\0`, from, hit }));
  }

  /**
   * Delivers the next client bytes that contain this text only up to the middle of the text. Holds back the rest and
   * all bytes after it.
   */
  holdWithin(text: string): Promise<() => void> {
    const from = (bytes: Buffer) => bytes.indexOf(text) + (text.length >> 1);
    return new Promise((hit) => this.holds.push({ text, from, hit }));
  }

  /**
   * Delivers the next client bytes that contain this text, but not the COMMIT after it: the server waits and keeps its
   * locks.
   */
  holdCommitBehind(text: string): Promise<() => void> {
    // In a message with COMMIT, the text follows the type (one byte), the length (four bytes) and an empty name.
    const from = (bytes: Buffer) => {
      const commit = bytes.indexOf("COMMIT\0", bytes.indexOf(text));
      return commit < 0 ? bytes.length : commit - 6;
    };
    return new Promise((hit) => this.holds.push({ text, from, hit }));
  }

  /** Replaces this text in the client's next message by another one of the same length. */
  spoil(text: string, by: string): Promise<void> {
    if (text.length !== by.length) throw new Error("a message must keep its length");
    return new Promise((hit) => this.spoils.push({ text, by, hit }));
  }

  /** Breaks every connection, as a failing network would. */
  cut(): void {
    for (const { client, upstream } of this.pairs) {
      client.destroy();
      upstream.destroy();
    }
  }

  /** Refuses new connections until `admit` is called. */
  refuse(): void {
    this.refusing = true;
  }

  admit(): void {
    this.refusing = false;
  }

  /** Keeps connections open and accepts new ones, but delivers no client bytes, like a server that hangs. */
  freeze(): void {
    this.frozen = true;
    for (const { client } of this.pairs) client.pause();
  }

  thaw(): void {
    this.frozen = false;
    for (const { client } of this.pairs) client.resume();
  }

  /** Delays everything that the server sends from now on, like a slow database. */
  slowDown(ms: number): void {
    this.lateMs = ms;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private accept(client: Socket): void {
    client.on("error", () => undefined);
    if (this.refusing) {
      this.refused++;
      client.destroy();
      return;
    }
    const upstream = connect(this.upstreamPort, "127.0.0.1");
    upstream.on("error", () => undefined);
    let isAnswered = true;
    const pair: Pair = {
      client,
      upstream,
      answer: (bytes) => {
        isAnswered = true;
        if (this.lateMs === 0) client.write(bytes);
        else systemClock.after(this.lateMs, () => client.write(bytes));
      },
    };
    this.pairs.add(pair);
    client.on("data", (bytes) => {
      if (isAnswered) this.trips++;
      isAnswered = false;
      this.forward(pair, bytes);
    });
    if (this.frozen) client.pause();
    upstream.on("data", (bytes) => pair.answer(bytes));
    client.on("close", () => this.end(pair));
    upstream.on("close", () => this.end(pair));
  }

  private forward(pair: Pair, bytes: Buffer): void {
    const spoiled = this.spoils.findIndex(({ text }) => bytes.includes(text));
    if (spoiled >= 0) {
      const [{ text, by, hit }] = this.spoils.splice(spoiled, 1) as [(typeof this.spoils)[number]];
      bytes.write(by, bytes.indexOf(text), "latin1");
      hit();
    }
    const held = this.holds.findIndex(({ text }) => bytes.includes(text));
    if (held >= 0) {
      const [{ from, hit }] = this.holds.splice(held, 1) as [Hold];
      pair.client.pause();
      pair.upstream.write(bytes.subarray(0, from(bytes)));
      hit(() => {
        pair.upstream.write(bytes.subarray(from(bytes)));
        pair.client.resume();
      });
      return;
    }
    const commits = bytes.includes("COMMIT\0");
    const delay = commits ? this.delays.shift() : undefined;
    if (delay !== undefined) {
      this.outlive(pair);
      delay(() => new Promise((resolve) => pair.upstream.on("close", () => resolve()).end(bytes)));
      return;
    }
    const fault = commits ? this.faults.shift() : undefined;
    if (fault === undefined) {
      pair.upstream.write(bytes);
      return;
    }
    if (fault.fault === "cut-before") {
      pair.upstream.destroy();
      pair.client.destroy();
    } else if (fault.fault === "stall-before") {
      pair.client.pause();
    } else if (fault.fault === "hold-answer") {
      this.mute(pair);
      pair.upstream.write(bytes);
    } else {
      this.cutAtAnswer(pair, fault);
      pair.upstream.write(bytes);
      return;
    }
    fault.hit();
  }

  /**
   * Loses the response after the server has carried out the COMMIT. The server may refuse the COMMIT (for example
   * because of a lock that another fault holds), or the client may disconnect before. Then there is no response to
   * lose, and the fault waits for the next COMMIT.
   */
  private cutAtAnswer(pair: Pair, fault: Fault): void {
    const { client, answer } = pair;
    let said = Buffer.alloc(0);
    const postpone = () => {
      this.mute(pair);
      this.faults.unshift(fault);
    };
    client.once("close", postpone);
    pair.answer = (bytes) => {
      said = Buffer.concat([said, bytes]);
      const isDone = said.includes(DONE);
      if (!isDone && !said.includes(UNDONE)) return;
      client.off("close", postpone);
      if (isDone) {
        client.destroy();
        fault.hit();
        return;
      }
      postpone();
      pair.answer = answer;
      answer(said);
    };
  }

  private mute(pair: Pair): void {
    pair.answer = () => undefined;
  }

  /** Closes the client's connection while the server's connection stays open, as if the server had not noticed yet. */
  private outlive(pair: Pair): void {
    this.mute(pair);
    this.pairs.delete(pair);
    pair.client.removeAllListeners("close");
    pair.client.destroy();
  }

  /**
   * Closes a pair of connections. Bytes already sent to the server are still delivered, as a kernel does after a
   * process has ended.
   */
  private end(pair: Pair): void {
    this.pairs.delete(pair);
    pair.client.destroy();
    pair.upstream.end();
  }
}
