/**
 * Address of an account as lower-case 20-byte hex. Addresses that differ only in casing are one signer, so the domain
 * uses only this form.
 */
export type Address = `0x${string}`;
/** Hash as lower-case 32-byte hex. */
export type Hash = `0x${string}`;
/** Bytes as lower-case hex of any even length. */
export type Hex = `0x${string}`;

/** A lane: one signer on one chain. The unit of nonce order, of leasing and of parallelism. */
export interface Lane {
  readonly chainId: number;
  readonly signer: Address;
}

/**
 * Proof that the writer owns the lane: instance id and fencing token. Every write of lane data carries it. The instance
 * id is needed because a database that lost commits may issue the same token twice, but never to the same process
 * (docs/leases.md).
 */
export interface Fence {
  readonly lane: Lane;
  readonly instanceId: string;
  readonly token: number;
}

export type LaneKey = string;

export function laneKey(lane: Lane): LaneKey {
  return `${lane.chainId}:${lane.signer}`;
}

/**
 * Compares two lanes for sorting. Every database transaction locks its lanes in this order, so that deadlocks are
 * impossible.
 */
export function compareLanes(a: Lane, b: Lane): number {
  if (a.chainId !== b.chainId) return a.chainId - b.chainId;
  if (a.signer === b.signer) return 0;
  return a.signer < b.signer ? -1 : 1;
}

/**
 * Assigns a lane to one of the node's writer shards. The assignment affects only the order of work, never correctness.
 */
export function shardOf(key: LaneKey, shards: number): number {
  return (fnv1a(key) >>> 0) % shards;
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}

/**
 * Score of a name for a key (rendezvous hashing): the name with the highest score gets the key. All nodes compute the
 * same scores. If a name joins or leaves, only the keys that it gets or had are affected. FNV-1a with murmur's finish:
 * names that differ in one letter have unrelated scores.
 */
export function affinity(key: string, name: string): number {
  let hash = fnv1a(`${name}\n${key}`);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
