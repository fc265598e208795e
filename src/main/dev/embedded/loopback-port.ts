import { type AddressInfo, createServer, type Server } from "node:net";
import { EmbeddedError, systemCode } from "./embedded-error.ts";

export const LOOPBACK = "127.0.0.1";

/** A port that is free at this moment. Another process may take it first: the caller must be ready for that. */
export function freePort(): Promise<number> {
  return probe(0);
}

export async function assertPortFree(port: number): Promise<void> {
  try {
    await probe(port);
  } catch (error) {
    throw systemCode(error) === "EADDRINUSE" ? portTaken(port) : error;
  }
}

export function portTaken(port: number): EmbeddedError {
  const message = `port ${port} is already in use: choose another one, or stop what listens there`;
  return new EmbeddedError("PORT_TAKEN", message);
}

/** Of a server that listens on TCP. */
export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

function probe(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, LOOPBACK, () => {
      const bound = portOf(server);
      server.close(() => resolve(bound));
    });
  });
}
