import { hostname, type NetworkInterfaceInfo, networkInterfaces } from "node:os";

export interface Machine {
  readonly addresses: readonly Pick<NetworkInterfaceInfo, "address" | "family" | "internal">[];
  readonly hostname: string;
}

/**
 * Where others reach a node that was given no URL to advertise. A wildcard is no address: every node behind one would
 * advertise the same, and each would take it for itself. The first address of the machine that others can see is, in a
 * container as on a host, the one they reach.
 */
export function advertisedUrl(listening: string, machine: Machine = thisMachine()): string {
  const url = new URL(listening);
  if (url.hostname !== "0.0.0.0" && url.hostname !== "[::]") return listening;
  const visible = machine.addresses.filter(({ internal, address }) => !internal && !address.startsWith("fe80:"));
  const chosen = visible.find(({ family }) => family === "IPv4") ?? visible[0];
  url.hostname = literalHost(chosen?.address ?? machine.hostname);
  return url.origin;
}

/** As it stands in a URL: an IPv6 address in brackets. */
export function literalHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function thisMachine(): Machine {
  return { addresses: Object.values(networkInterfaces()).flatMap((each) => each ?? []), hostname: hostname() };
}
