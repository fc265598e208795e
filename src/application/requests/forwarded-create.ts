import { defined } from "../../domain/defined.ts";
import { invalid } from "../../domain/errors.ts";
import { isQueueShare } from "../../domain/keys/principal.ts";
import type { Address } from "../../domain/lane.ts";
import type { ForwardedCreate } from "../../ports/peers.ts";
import { asObject } from "./fields.ts";

/** As transactions and lanes are named inside: normalised. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const ADDRESS = /^0x[0-9a-f]{40}$/;

/** One create as another node tells of it. What its caller asked for is judged later, like any other's. */
export function readForwardedCreate(item: unknown, path: string): ForwardedCreate {
  const { txId, owner, queueShare, chosen, request } = asObject(item, path);
  if (typeof txId !== "string" || !UUID.test(txId)) throw invalid(`${path}.txId`, "must be a UUID");
  const told = asObject(request, `${path}.request`);
  if (queueShare !== undefined && !isQueueShare(queueShare)) {
    throw invalid(`${path}.queueShare`, "must be a part of one");
  }
  if (chosen !== undefined && !(typeof chosen === "string" && ADDRESS.test(chosen))) {
    throw invalid(`${path}.chosen`, "must be an address");
  }
  const said = defined({ queueShare, chosen: chosen as Address | undefined });
  return { txId, owner: readOwner(owner, `${path}.owner`), ...said, request: told };
}

/** The name of the API key that a caller showed where it was heard; absent: none was asked for. */
export function readOwner(value: unknown, path: string): string | null {
  if (value === undefined) return null;
  if (typeof value !== "string" || value === "") throw invalid(path, "must be the name of an API key");
  return value;
}
