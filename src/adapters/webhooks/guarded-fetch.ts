import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector, type Dispatcher, fetch } from "undici";
import { addressGuard } from "./networks.ts";

/**
 * A connection was refused because of its address. Only `code` is shown to people: the address may reveal the internal
 * network.
 */
class AddressRefused extends Error {
  override readonly name = "AddressRefused";
  readonly code = "private address";
}

const CONNECT_TIMEOUT_MS = 4_000;

/**
 * Makes connections to public addresses, and to those of the given networks, only. `lookup` is replaced in tests.
 */
export function guardedAgent(networks: readonly string[], lookup: LookupFunction = systemLookup): Dispatcher {
  const mayConnect = addressGuard(networks);
  const guarded: LookupFunction = (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, found, family) => {
      if (error !== null) return callback(error, found, family);
      const addresses = found as unknown as readonly LookupAddress[];
      // Refuse a name if any of its addresses is private, because the connector may choose any of them.
      if (!addresses.every(({ address }) => mayConnect(address))) return callback(new AddressRefused(), []);
      const [first] = addresses;
      return options.all === true
        ? callback(null, [...addresses])
        : callback(null, first?.address ?? "", first?.family);
    });
  };
  const connect = buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup: guarded });
  return new Agent({
    // Check a literal address here, because it is never looked up.
    connect: (options, callback) => {
      const literal = options.hostname.replace(/^\[|\]$/g, "");
      if (isIP(literal) !== 0 && !mayConnect(literal)) return callback(new AddressRefused(), null);
      return connect(options, callback);
    },
    // One deadline of the Clock port covers connecting, waiting and reading; undici's own timeouts are off.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/**
 * Makes a fetch that connects only where `guardedAgent` does. `userAgent` names the sender to receivers and their
 * firewalls.
 */
export function guardedFetch(
  networks: readonly string[],
  userAgent: string,
  lookup?: LookupFunction,
): typeof globalThis.fetch {
  const dispatcher = guardedAgent(networks, lookup);
  const send: unknown = (url: string, init: { readonly headers?: Readonly<Record<string, string>> }) =>
    fetch(url, { ...init, headers: { "user-agent": userAgent, ...init.headers }, dispatcher });
  return send as typeof globalThis.fetch;
}
