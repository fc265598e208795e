/** The used part of `ws`, an optional package of the user. viem depends on it, so npm usually installs it in reach. */
import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import type { Duplex } from "node:stream";

export interface WebSocketLike {
  /** Bytes sent but not written to the network yet. */
  readonly bufferedAmount: number;
  /** `left` is called when the text was written to the connection, or lost with it. */
  send(text: string, left: () => void): void;
  ping(): void;
  close(code: number, reason: string): void;
  /** Closes without a close frame. */
  terminate(): void;
  /** Stops reading until `resume`. */
  pause(): void;
  resume(): void;
  on(event: "message", listener: (data: Buffer, isBinary: boolean) => void): void;
  on(event: "ping" | "pong", listener: (data: Buffer) => void): void;
  on(event: "close" | "error", listener: () => void): void;
}

export interface WebSocketUpgrader {
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, taken: (socket: WebSocketLike) => void): void;
}

/** Resolves with null if the package is not installed. */
export type LoadUpgrader = (maxPayloadBytes: number) => Promise<WebSocketUpgrader | null>;

interface WebSocketPackage {
  readonly WebSocketServer: new (options: object) => WebSocketUpgrader;
}

/** Required, not imported: it stays outside of the bundle, and of what has to be installed. */
const require = createRequire(import.meta.url);

export const loadUpgrader: LoadUpgrader = async (maxPayload) => {
  try {
    const { WebSocketServer } = require("ws") as WebSocketPackage;
    // No compression: the size of a compressed message is only known after unpacking.
    return new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate: false, maxPayload });
  } catch {
    return null;
  }
};
