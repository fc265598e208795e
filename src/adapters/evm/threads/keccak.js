// No @ts-check, because this file of the hash-wasm package has no types. The package's entry point has types, but it
// compiles thirty other hashes.
import hashWasm from "hash-wasm/dist/keccak.umd.min.js";

/**
 * Keccak-256 for hot paths: two hashes for each signed transaction, thousands for each proved block. Other code uses
 * viem's, whose JavaScript takes ten times as long.
 *
 * @typedef {(bytes: Uint8Array) => Uint8Array} Keccak
 */

/** @type {Keccak} */
let loaded = () => {
  throw new Error("await keccakLoaded before the first hash");
};

/** Settles when `keccak256` can be called. Not a top-level await: CommonJS cannot `require` a module that has one. */
export const keccakLoaded = loadKeccak().then((hash) => {
  loaded = hash;
});

/** @type {Keccak} */
export const keccak256 = (bytes) => loaded(bytes);

/**
 * Loads Keccak-256 as WebAssembly, or viem's JavaScript if WebAssembly is not available (node --jitless).
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
