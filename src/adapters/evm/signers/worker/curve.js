// @ts-check
// The package's entry point also loads a Bitcoin Cash virtual machine (170 ms and 18 MB more).
import { instantiateSecp256k1 } from "@bitauth/libauth/build/lib/crypto/secp256k1.js";
import { toHex } from "./serialise.js";

/**
 * @typedef {import("./serialise.js").EthereumSignature} EthereumSignature
 */

/**
 * Signs a 32-byte hash: deterministic nonce (RFC 6979), low s (EIP-2), recovery id.
 *
 * @typedef {object} Curve
 * @property {"wasm" | "javascript"} kind
 * @property {(privateKey: Uint8Array, hash: Uint8Array) => EthereumSignature | Promise<EthereumSignature>} sign
 * @property {(hash: Uint8Array, signature: EthereumSignature) => Promise<Uint8Array | null>} recover the public key, 65 bytes;
 *   null if the signature is invalid
 */

/**
 * Loads libsecp256k1 as WebAssembly, or viem's JavaScript if WebAssembly is not available (node --jitless, a hardened
 * container). Both produce the same bytes.
 *
 * @param {typeof instantiateSecp256k1 | null} instantiate null: JavaScript without trying WebAssembly
 * @returns {Promise<Curve>}
 */
export async function loadCurve(instantiate = instantiateSecp256k1) {
  if (instantiate === null) return loadJavaScriptCurve();
  try {
    return wasmCurve(await instantiate());
  } catch {
    return loadJavaScriptCurve();
  }
}

/**
 * Signs with libsecp256k1 (WebAssembly).
 *
 * @param {Awaited<ReturnType<typeof instantiateSecp256k1>>} secp256k1
 * @returns {Curve}
 */
function wasmCurve(secp256k1) {
  return {
    kind: "wasm",
    sign(privateKey, hash) {
      const result = secp256k1.signMessageHashRecoverableCompact(privateKey, hash);
      if (typeof result === "string") throw new Error(result);
      const hex = Buffer.from(result.signature).toString("hex");
      return { r: hex.slice(0, 64), s: hex.slice(64), yParity: parity(result.recoveryId) };
    },
    async recover(hash, { r, s, yParity }) {
      const compact = Buffer.from(r.padStart(64, "0") + s.padStart(64, "0"), "hex");
      const key = secp256k1.recoverPublicKeyUncompressed(compact, yParity, hash);
      return typeof key === "string" ? null : key;
    },
  };
}

/** Signs with viem's JavaScript. @returns {Promise<Curve>} */
async function loadJavaScriptCurve() {
  const { sign } = await import("viem/accounts");
  const { recoverPublicKey } = await import("viem/utils");
  return {
    kind: "javascript",
    async sign(privateKey, hash) {
      const { r, s, yParity } = await sign({ hash: toHex(hash), privateKey: toHex(privateKey) });
      return { r: r.slice(2).padStart(64, "0"), s: s.slice(2).padStart(64, "0"), yParity: parity(yParity ?? -1) };
    },
    async recover(hash, { r, s, yParity }) {
      const signature = { r: /** @type {const} */ (`0x${r}`), s: /** @type {const} */ (`0x${s}`), yParity };
      return recoverPublicKey({ hash: toHex(hash), signature }).then(
        (key) => Buffer.from(key.slice(2), "hex"),
        () => null,
      );
    },
  };
}

/**
 * Parity of a signature. Recovery ids 2 and 3 mean that r overflowed the group order (one in 2^128); Ethereum cannot
 * encode them. @param {number} recoveryId
 */
function parity(recoveryId) {
  if (recoveryId !== 0 && recoveryId !== 1)
    throw new Error(`the signature's recovery id is ${recoveryId}, but Ethereum encodes only 0 and 1`);
  return recoveryId;
}
