/**
 * Stage 1, first step: parses one create.
 * Reads: the request. Writes: nothing. Invariant: a mistake is refused before anything is consumed. A crash here leaves nothing
 * behind.
 */
import { FencepostError } from "../../../domain/errors.ts";
import type { Address, Lane } from "../../../domain/lane.ts";
import type { PoolAsked } from "../../../domain/nonces/pool.ts";
import type { Intent } from "../../../domain/transaction/transaction.ts";
import type { CreateRequest } from "../../api.ts";
import { type Naming, type NormalisePorts, normalise } from "../../requests/normalise.ts";
import { namesPool, parsePool } from "../../requests/pool.ts";
import type { Item } from "./answer-existing.ts";
import type { Entering } from "./queue-shares.ts";

/** A create as it was asked for; `txId` if another node received it first. */
export interface AskedCreate extends Naming {
  readonly request: CreateRequest;
  /** Given by another node, which knows the API key. */
  readonly queueShare?: number;
}

/** Source of creates. Those of another node are made here or refused, but never forwarded to a third node. */
export type Inlet = "caller" | { readonly repeat: boolean };

export interface CreateItem extends Item, Entering {
  readonly asked: AskedCreate;
  intent: Intent;
  /** Null: the caller named the signer. */
  readonly pool: PoolRequest | null;
}

export interface PoolRequest {
  readonly asked: PoolAsked;
  /** Lanes to choose from; none once the request was answered without one. */
  lanes: readonly Lane[];
  readonly tried: Set<Address>;
}

/** In the place of a signer until one is chosen. */
const NOBODY = `0x${"0".repeat(40)}` as Address;

export function parseCreate(ports: NormalisePorts, asked: AskedCreate, inlet: Inlet): CreateItem | FencepostError {
  const { request, limits } = asked;
  const queueShare = limits?.queueShare ?? asked.queueShare ?? null;
  const signer = (request as CreateRequest | null | undefined)?.signer;
  try {
    if (inlet !== "caller" || !namesPool(signer)) {
      return { asked, intent: normalise(ports, request, asked), queueShare, result: null, pool: null };
    }
    // A key that is limited to signers is judged by all members of the pool (pools.ts).
    const ofChains = limits === undefined ? {} : { limits: { ...limits, signers: null } };
    const intent = normalise(ports, request, { ...asked, ...ofChains, chosen: NOBODY });
    const pool = { asked: parsePool(signer), lanes: [], tried: new Set<Address>() };
    return { asked, intent, queueShare, result: null, pool };
  } catch (error) {
    if (error instanceof FencepostError) return error;
    throw error;
  }
}

export interface PoolItem extends CreateItem {
  readonly pool: PoolRequest;
}

export function isPooled(item: CreateItem): item is PoolItem {
  return item.pool !== null;
}

export function isItem(parsed: CreateItem | FencepostError): parsed is CreateItem {
  return !(parsed instanceof FencepostError);
}
