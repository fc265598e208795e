import { hostname, type NetworkInterfaceInfo, networkInterfaces } from "node:os";

export interface Machine {
  readonly addresses: readonly Pick<NetworkInterfaceInfo, "address" | "family" | "internal">[];
  readonly hostname: string;
}

/**
 * URL that a node advertises to other nodes if none is configured. A wildcard host (0.0.0.0, ::) cannot be advertised:
 * every node would advertise the same URL and mistake it for its own. So the machine's first external address is used,
 * which is reachable in a container and on a host.
 */
export function advertisedUrl(listening: string, machine: Machine = thisMachine()): string {
  const url = new URL(listening);
  if (url.hostname !== "0.0.0.0" && url.hostname !== "[::]") return listening;
  const visible = machine.addresses.filter(({ internal, address }) => !internal && !address.startsWith("fe80:"));
  const chosen = visible.find(({ family }) => family === "IPv4") ?? visible[0];
  url.hostname = literalHost(chosen?.address ?? machine.hostname);
  return url.origin;
}

/** Formats a host for a URL: an IPv6 address gets brackets. */
export function literalHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function thisMachine(): Machine {
  return { addresses: Object.values(networkInterfaces()).flatMap((each) => each ?? []), hostname: hostname() };
}
