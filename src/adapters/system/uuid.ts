/** Fills the given bytes with chance. */
export type FillRandom = (bytes: Uint8Array) => void;

const ID_BYTES = 16;
/** Asking for chance costs more than what is got. */
const FILLED_AT_ONCE = 128;
const COUNTER_LIMIT = 0x1000;
/** A fresh millisecond starts in the lower half, so that at least 2,048 ids fit before the counter runs over. */
const COUNTER_START_MASK = 0x7ff;

/**
 * UUID version 7 (RFC 9562, section 5.7) with the 12 bits after the version as a counter (section 6.2, method 1): ids of
 * one process are strictly ascending even inside one millisecond, and when the wall clock steps back.
 */
export function createUuidSequence(nowMs: () => number, fillRandom: FillRandom): () => string {
  const pool = new Uint8Array(ID_BYTES * FILLED_AT_ONCE);
  let used = pool.length;
  let lastMs = -1;
  let counter = 0;
  return () => {
    if (used === pool.length) {
      fillRandom(pool);
      used = 0;
    }
    const bytes = pool.subarray(used, used + ID_BYTES);
    used += ID_BYTES;
    const wallMs = nowMs();
    if (wallMs > lastMs) {
      lastMs = wallMs;
      counter = (((bytes[6] ?? 0) << 8) | (bytes[7] ?? 0)) & COUNTER_START_MASK;
    } else if (++counter === COUNTER_LIMIT) {
      lastMs++;
      counter = 0;
    }
    return layOut(bytes, lastMs, counter);
  };
}

function layOut(bytes: Uint8Array, ms: number, counter: number): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  view.setUint16(0, Math.floor(ms / 0x1_0000_0000));
  view.setUint32(2, ms % 0x1_0000_0000);
  view.setUint16(6, 0x7000 | counter);
  view.setUint8(8, 0x80 | (view.getUint8(8) & 0x3f));
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
