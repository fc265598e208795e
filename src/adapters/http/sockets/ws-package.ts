/** What is used of `ws`, a package that the user brings: viem has it among its own, and npm puts that within reach. */
import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import type { Duplex } from "node:stream";

export interface WebSocketLike {
  /** Bytes that were sent and have not left yet. */
  readonly bufferedAmount: number;
  /** `left`: it has been handed to the connection, or is lost with it. */
  send(text: string, left: () => void): void;
  ping(): void;
  close(code: number, reason: string): void;
  /** Without a word. */
  terminate(): void;
  /** Nothing is read from the connection until `resume`. */
  pause(): void;
  resume(): void;
  on(event: "message", listener: (data: Buffer, isBinary: boolean) => void): void;
  on(event: "ping" | "pong", listener: (data: Buffer) => void): void;
  on(event: "close" | "error", listener: () => void): void;
}

export interface WebSocketUpgrader {
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, taken: (socket: WebSocketLike) => void): void;
}

/** Null: the package is not installed. */
export type LoadUpgrader = (maxPayloadBytes: number) => Promise<WebSocketUpgrader | null>;

interface WebSocketPackage {
  readonly WebSocketServer: new (options: object) => WebSocketUpgrader;
}

/** Required, not imported: it stays outside of the bundle, and of what has to be installed. */
const require = createRequire(import.meta.url);

export const loadUpgrader: LoadUpgrader = async (maxPayload) => {
  try {
    const { WebSocketServer } = require("ws") as WebSocketPackage;
    // Compressed messages would have to be unpacked to know how large they are.
    return new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate: false, maxPayload });
  } catch {
    return null;
  }
};
