// @ts-check
import { byteString, EMPTY, integer, list } from "../../threads/rlp.js";
import { keccak } from "./fields.js";

/**
 * Root of the Merkle Patricia trie (Yellow Paper, appendix D) with the keys RLP(0), RLP(1), …. A block header commits
 * to the block's transactions and receipts by such roots.
 *
 * @typedef {{ readonly path: string, readonly value: string }} Entry path in nibbles, both hex without prefix
 */

/**
 * Computes the trie's root from its values, in order.
 *
 * @param {readonly string[]} values hex without prefix
 * @returns {string} hex without prefix
 */
export function orderedTrieRoot(values) {
  if (values.length === 0) return keccak(EMPTY);
  const entries = values.map((value, index) => ({ path: integer(index), value }));
  entries.sort((a, b) => (a.path < b.path ? -1 : 1));
  return keccak(node(entries, 0));
}

/**
 * Encodes a trie node. No RLP key is a prefix of another, so a branch node never holds a value.
 *
 * @param {readonly Entry[]} entries sorted by path, all with the same path up to `depth`
 * @param {number} depth
 * @returns {string}
 */
function node(entries, depth) {
  const [first] = entries;
  const last = entries.at(-1);
  if (first === undefined || last === undefined) return EMPTY;
  if (first === last) return list(byteString(compact(first.path.slice(depth), 2)) + byteString(first.value));
  let shared = depth;
  while (first.path[shared] === last.path[shared]) shared++;
  if (shared === depth) return branch(entries, depth);
  return list(byteString(compact(first.path.slice(depth, shared), 0)) + reference(branch(entries, shared)));
}

/**
 * Encodes a branch node with one child per nibble.
 *
 * @param {readonly Entry[]} entries
 * @param {number} depth
 */
function branch(entries, depth) {
  let children = "";
  let from = 0;
  for (let nibble = 0; nibble < 16; nibble++) {
    let to = from;
    while (to < entries.length && entries[to]?.path[depth] === nibble.toString(16)) to++;
    children += to === from ? EMPTY : reference(node(entries.slice(from, to), depth + 1));
    from = to;
  }
  return list(children + EMPTY);
}

/**
 * Reference to a trie node: a node of 32 bytes or more is referenced by its hash; a smaller one is embedded in its
 * parent. @param {string} encoded
 */
const reference = (encoded) => (encoded.length < 64 ? encoded : byteString(keccak(encoded)));

/**
 * Hex-prefix encoding: a prefix with the kind of node and the parity of the path's length (Yellow Paper, appendix C).
 *
 * @param {string} path
 * @param {0 | 2} kind 0: extension, 2: leaf
 */
const compact = (path, kind) => (path.length % 2 === 0 ? `${kind}0${path}` : `${kind + 1}${path}`);
