import { generateKeyPairSync, hash, randomBytes, randomFillSync } from "node:crypto";
import type { Clock } from "../../ports/clock.ts";
import type { Entropy } from "../../ports/entropy.ts";
import type { Secrets } from "../../ports/secrets.ts";

export function createEntropy(clock: Pick<Clock, "now">): Entropy {
  return { uuid: createUuidSequence(() => clock.now().getTime(), randomFillSync), random: () => Math.random() };
}

/** Creates the key pair of this process (Ed25519). The private key never leaves the process. */
export function createKeyPair() {
  return generateKeyPairSync("ed25519");
}

/** Size of a random secret: 192 bits, which are 32 characters of base64url. */
const SECRET_BYTES = 24;

export const systemSecrets: Secrets = {
  make() {
    const secret = randomBytes(SECRET_BYTES).toString("base64url");
    return { secret, digest: hash("sha256", secret, "hex") };
  },
};

const ID_BYTES = 16;
/** Number of ids per call to the random generator, because a call costs more than its bytes. */
const FILLED_AT_ONCE = 128;
const COUNTER_LIMIT = 0x1000;
/**
 * Mask for the start of a UUID's counter: it starts in the lower half, so that at least 2,048 ids fit into a
 * millisecond.
 */
const COUNTER_START_MASK = 0x7ff;
const VERSION = 0x7000;
const VARIANT = 0x80;
const VARIANT_MASK = 0x3f;

/**
 * Creates ids: UUID version 7 (RFC 9562, section 5.7) with the 12 bits after the version as a counter (section 6.2,
 * method 1). Ids of one process are strictly ascending, even inside one millisecond and when the wall clock steps back.
 */
export function createUuidSequence(nowMs: () => number, fillRandom: (bytes: Uint8Array) => void): () => string {
  const pool = Buffer.alloc(ID_BYTES * FILLED_AT_ONCE);
  let used = pool.length;
  let lastMs = -1;
  let time = "";
  let counter = 0;
  return () => {
    if (used === pool.length) {
      fillRandom(pool);
      used = 0;
    }
    const from = used;
    used += ID_BYTES;
    const wallMs = nowMs();
    if (wallMs > lastMs) {
      lastMs = wallMs;
      time = timeOf(lastMs);
      counter = pool.readUInt16BE(from + 6) & COUNTER_START_MASK;
    } else if (++counter === COUNTER_LIMIT) {
      lastMs++;
      time = timeOf(lastMs);
      counter = 0;
    }
    pool[from + 8] = VARIANT | ((pool[from + 8] ?? 0) & VARIANT_MASK);
    const rest = pool.toString("hex", from + 8, from + ID_BYTES);
    return `${time}-${(VERSION | counter).toString(16)}-${rest.slice(0, 4)}-${rest.slice(4)}`;
  };
}

/** Formats a UUID's 48-bit timestamp in hex. */
function timeOf(ms: number) {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}
