import { fnv1a } from "./lane.ts";

/**
 * How well a name fits a key (rendezvous hashing): whoever scores highest has the key, everybody computes the same, and a
 * name that joins or leaves moves its own keys alone. FNV-1a with murmur's finish: two names that differ in one letter
 * score nothing alike.
 */
export function affinity(key: string, name: string): number {
  let hash = fnv1a(`${name}\n${key}`);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
