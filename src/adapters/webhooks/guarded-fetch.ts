import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector, fetch } from "undici";
import { addressGuard } from "./networks.ts";

/** `code` is what people read: the address itself stays inside. */
class AddressRefused extends Error {
  override readonly name = "AddressRefused";
  readonly code = "private address";
}

const CONNECT_TIMEOUT_MS = 4_000;

/** A fetch that connects to public addresses, and to those of the networks named. `lookup`: another one for tests. */
export function guardedFetch(
  networks: readonly string[],
  lookup: LookupFunction = systemLookup,
): typeof globalThis.fetch {
  const mayConnect = addressGuard(networks);
  const guarded: LookupFunction = (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, found, family) => {
      if (error !== null) return callback(error, found, family);
      const addresses = found as unknown as readonly LookupAddress[];
      // Of several, one is enough to refuse: which of them is connected to is not for us to say.
      if (!addresses.every(({ address }) => mayConnect(address))) return callback(new AddressRefused(), []);
      const [first] = addresses;
      return options.all === true
        ? callback(null, [...addresses])
        : callback(null, first?.address ?? "", first?.family);
    });
  };
  const connect = buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup: guarded });
  const dispatcher = new Agent({
    // A literal address is never looked up.
    connect: (options, callback) => {
      const literal = options.hostname.replace(/^\[|\]$/g, "");
      if (isIP(literal) !== 0 && !mayConnect(literal)) return callback(new AddressRefused(), null);
      return connect(options, callback);
    },
    // The Clock port owns time: one deadline covers connecting, waiting and reading.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const send: unknown = (url: string, init: object) => fetch(url, { ...init, dispatcher });
  return send as typeof globalThis.fetch;
}
