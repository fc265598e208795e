import { hash, randomBytes } from "node:crypto";
import type { Secrets } from "../../ports/secrets.ts";

/** 192 bits: 32 characters of base64url. */
const BYTES = 24;

export const systemSecrets: Secrets = {
  make() {
    const secret = randomBytes(BYTES).toString("base64url");
    return { secret, digest: hash("sha256", secret, "hex") };
  },
};
