import { createServer } from "node:net";
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
  return new EmbeddedError(
    "PORT_TAKEN",
    `port ${port} is already in use: choose another one, or stop what listens there`,
  );
}

function probe(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, LOOPBACK, () => {
      const address = server.address();
      const bound = typeof address === "object" && address !== null ? address.port : port;
      server.close(() => resolve(bound));
    });
  });
}
