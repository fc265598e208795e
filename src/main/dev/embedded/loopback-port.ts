import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { codeOf } from "../../../domain/text/thrown.ts";
import { EmbeddedError } from "./embedded-error.ts";

export const LOOPBACK = "127.0.0.1";

/** Returns a port that is free now. Another process may take it before the caller uses it. */
export function freePort(): Promise<number> {
  return probe(0);
}

export async function assertPortFree(port: number): Promise<void> {
  try {
    await probe(port);
  } catch (error) {
    throw codeOf(error) === "EADDRINUSE" ? portTaken(port) : error;
  }
}

export function portTaken(port: number): EmbeddedError {
  return new EmbeddedError(
    "PORT_TAKEN",
    `port ${port} is already in use: choose another one, or stop what listens there`,
  );
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function probe(port: number) {
  const server = createServer().listen(port, LOOPBACK);
  await once(server, "listening");
  const bound = portOf(server);
  await once(server.close(), "close");
  return bound;
}
