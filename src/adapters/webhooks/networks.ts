/**
 * Where a hook and alerts may lead. A name can be made to mean any address, after it was configured as well as before:
 * the metadata service of a cloud, a database beside the node. So each address is looked at after the name was resolved
 * and before the first byte leaves. Private ones are refused, unless their network is named in the configuration.
 */
import { BlockList, isIP } from "node:net";

/** IANA's special-purpose registries: this host, private use, link-local, shared, benchmarks, multicast, translation. */
const PRIVATE = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"],
  ...["192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"],
  ...["::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2002::/16"],
  ...["fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"],
];

/** An address, or a network as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = "", prefix, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bitsOf(address));
}

/** Judges addresses, not names. One of IPv4 in the clothes of IPv6 (`::ffff:10.0.0.1`) is what it is underneath. */
export function addressGuard(allowed: readonly string[]): (address: string) => boolean {
  const own = listOf(allowed);
  return (address) => {
    const family = isIP(address) === 4 ? "ipv4" : "ipv6";
    return isIP(address) !== 0 && (!PRIVATE_LIST.check(address, family) || own.check(address, family));
  };
}

function listOf(networks: readonly string[]): BlockList {
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
