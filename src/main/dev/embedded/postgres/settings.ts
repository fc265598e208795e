import { LOOPBACK } from "../loopback-port.ts";

export type Settings = Readonly<Record<string, string>>;

/** A small server for one machine that is as durable as a real one: what Fencepost promises must hold in `dev` too. */
const DEFAULTS: Settings = {
  listen_addresses: LOOPBACK,
  // No socket file: its path may hold 107 characters only, and a checkout may lie deeper than that.
  unix_socket_directories: "",
  max_connections: "100",
  shared_buffers: "128MB",
  fsync: "on",
  synchronous_commit: "on",
  timezone: "UTC",
  log_timezone: "UTC",
  log_checkpoints: "off",
  logging_collector: "off",
  log_destination: "stderr",
};

/** Given on the command line: nothing in postgresql.conf has to be edited, and the next start may choose anew. */
export function commandLine(port: number, overrides: Settings): string[] {
  const settings = { ...DEFAULTS, ...overrides, port: String(port) };
  return Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}
