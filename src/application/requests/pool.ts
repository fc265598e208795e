import { invalid } from "../../domain/errors.ts";
import type { Address } from "../../domain/lane.ts";
import { POOL_NAME, type PoolAsked } from "../../domain/nonces/pool.ts";
import { asObject, refuseUnknownKeys } from "./fields.ts";

/** What a person can see, as in a request id. */
const STICKY_KEY = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,255}$/u;

/** Whether `signer` names a pool; what else it may be is for whoever reads an address. */
export function namesPool(signer: unknown): signer is object {
  return typeof signer === "object" && signer !== null;
}

/** `{ pool, stickyKey? }` in the place of a signer. */
export function parsePool(signer: object): PoolAsked {
  const { pool, stickyKey = null, ...rest } = asObject(signer, "signer");
  refuseUnknownKeys(rest, [], "signer");
  if (typeof pool !== "string") throw invalid("signer.pool", "the name of a pool is required");
  if (!POOL_NAME.test(pool)) throw invalid("signer.pool", "is not the name of a pool (letters, digits, . _ and -)");
  if (stickyKey !== null && (typeof stickyKey !== "string" || !STICKY_KEY.test(stickyKey))) {
    throw invalid("signer.stickyKey", "must be 1 to 255 printable characters");
  }
  return { pool, stickyKey };
}

/** Where a signer was chosen for it already; elsewhere there is nobody to choose. */
export function chosenFrom(signer: object, chosen: Address | undefined): { readonly pool: string; signer: Address } {
  const { pool } = parsePool(signer);
  if (chosen === undefined) {
    throw invalid(
      "signer",
      "names a pool, of which a node chooses a signer as it takes a transaction in (POST /tx, or send without { client }); name a signer here",
    );
  }
  return { pool, signer: chosen };
}
