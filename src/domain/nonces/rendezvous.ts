import { fnv1a } from "../lane.ts";

/**
 * Score of a name for a key (rendezvous hashing): the highest score gets the key. Everybody computes the same, and a
 * name that joins or leaves moves only its own keys. FNV-1a with murmur's finish: names that differ in one letter have
 * unrelated scores.
 */
export function affinity(key: string, name: string): number {
  let hash = fnv1a(`${name}\n${key}`);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
