// Without @ts-check: the file of this one hash has no types. The package's entry point has, and compiles thirty other hashes.
import hashWasm from "hash-wasm/dist/keccak.umd.min.js";

/**
 * Keccak-256 for what hashes all day: two hashes for each signed transaction, thousands for each proved block. The rest of
 * the node hashes with viem, whose JavaScript takes ten times as long.
 *
 * @typedef {(bytes: Uint8Array) => Uint8Array} Keccak
 */

/** @type {Keccak} */
export const keccak256 = await loadKeccak();

/**
 * WebAssembly, or the JavaScript that viem brings where WebAssembly is not to be had (a process started with --jitless).
 *
 * @param {typeof import("hash-wasm").createKeccak} create
 * @returns {Promise<Keccak>}
 */
export async function loadKeccak(create = hashWasm.createKeccak) {
  try {
    const hasher = await create(256);
    return (bytes) => hasher.init().update(bytes).digest("binary");
  } catch {
    const { keccak256: hash } = await import("viem/utils");
    return (bytes) => hash(bytes, "bytes");
  }
}
