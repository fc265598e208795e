// @ts-check

/** @param {Uint8Array} bytes @returns {`0x${string}`} */
export function toHex(bytes) {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
