import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";

const CLOSE = 8;
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/**
 * A WebSocket server (RFC 6455) that reads short text frames and sends text frames, which is enough for a subscription.
 */
export class SocketServer {
  /** Messages received from clients, in order. */
  readonly received: string[] = [];
  private readonly server: Server = createServer();
  private readonly sockets = new Set<Socket>();

  async listen(): Promise<string> {
    this.server.on("upgrade", (request, stream) => {
      const socket = stream as Socket;
      const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}${GUID}`).digest("base64");
      const head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
      socket.write(`${[...head, `Sec-WebSocket-Accept: ${accept}`].join("\r\n")}\r\n\r\n`);
      this.sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => this.sockets.delete(socket));
      socket.on("data", (frame: Buffer) => this.take(frame, socket));
    });
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return `ws://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get connections(): number {
    return this.sockets.size;
  }

  /** Sends a text to every client. */
  send(text: string): void {
    const payload = Buffer.from(text);
    const size = payload.length < 126 ? [payload.length] : [126, payload.length >> 8, payload.length & 0xff];
    for (const socket of this.sockets) socket.write(Buffer.concat([Buffer.from([0x81, ...size]), payload]));
  }

  /** Breaks all connections without a close frame, as a power failure would. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private take(frame: Buffer, socket: Socket): void {
    const opcode = (frame[0] ?? 0) & 0x0f;
    if (opcode === CLOSE) socket.end(Buffer.from([0x80 | CLOSE, 0]));
    if (opcode !== 1) return;
    const length = (frame[1] ?? 0) & 0x7f;
    const mask = frame.subarray(2, 6);
    const bytes = frame.subarray(6, 6 + length).map((byte, at) => byte ^ (mask[at % 4] ?? 0));
    this.received.push(Buffer.from(bytes).toString());
  }
}
