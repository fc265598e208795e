/**
 * Addresses that hooks and alerts may connect to. A host name can be made to resolve to any address at any time, such
 * as a cloud's metadata service or a database. So each address is checked after the name was resolved and before the
 * first byte is sent. Private addresses are refused unless their network is configured.
 */
import { BlockList, isIP } from "node:net";

/**
 * Private networks, from IANA's special-purpose registries: this host, private use, link-local, shared, benchmarks,
 * multicast, translation.
 */
const PRIVATE = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"],
  ...["192.0.0.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"],
  ...["::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2002::/16"],
  ...["fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"],
];

/** True if the text is an address or a network such as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = "", prefix, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bitsOf(address));
}

/** Makes a check of addresses, not names. An IPv4-mapped IPv6 address (`::ffff:10.0.0.1`) is checked as IPv4. */
export function addressGuard(allowed: readonly string[]): (address: string) => boolean {
  const own = listOf(allowed);
  return (address) => {
    const family = isIP(address) === 4 ? "ipv4" : "ipv6";
    return isIP(address) !== 0 && (!PRIVATE_LIST.check(address, family) || own.check(address, family));
  };
}

function listOf(networks: readonly string[]) {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    list.addSubnet(address, Number(prefix ?? bitsOf(address)), isIP(address) === 4 ? "ipv4" : "ipv6");
  }
  return list;
}

const PRIVATE_LIST = listOf(PRIVATE);

function bitsOf(address: string): number {
  return isIP(address) === 4 ? 32 : 128;
}
