import { FencepostError } from "../errors.ts";
import type { Address, Lane } from "../lane.ts";

/**
 * Scopes of an API key: read, create, reserve nonces, act on any transaction and lane, approve, sign messages, manage
 * keys.
 */
export const SCOPES = ["read", "submit", "reserve", "operate", "approve", "sign", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** Form of a key's name, which is also the owner of transactions. */
export const KEY_NAME = /^[\w.-]{1,64}$/;

/** The authenticated caller. Determined once, when a request arrives, before anything is looked up for it. */
export interface Principal extends Limits, Quotas {
  /** Name of the API key; what it creates belongs to this name. Null: no key is required here. */
  readonly name: string | null;
  readonly scopes: ReadonlySet<Scope>;
}

/** The only signers and chains that the key may see and use; null: all. */
export interface Limits {
  readonly signers: ReadonlySet<Address> | null;
  readonly chains: ReadonlySet<number> | null;
}

/** Share of the nodes and of a lane that the key may use; null: unlimited. */
export interface Quotas {
  /** Per node: creates, items of batches, reservations. */
  readonly createsPerSecond: number | null;
  /** Per node: its own calls to a chain at `/rpc`. */
  readonly readsPerSecond: number | null;
  /** Share of a lane's queue that it may fill: above 0, at most 1. */
  readonly queueShare: number | null;
}

/** Limits on creates. */
export interface CreateLimits extends Limits, Partial<Pick<Quotas, "queueShare">> {}

/** Limits on creates and reads. */
export const MOST_PER_SECOND = 1_000_000;

/** Four decimals: a 4-byte float of the database keeps them exactly. */
export function isQueueShare(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value <= 1 && Math.round(value * 10_000) / 10_000 === value;
}

export const NO_QUOTAS: Quotas = { createsPerSecond: null, readsPerSecond: null, queueShare: null };

/** Scopes of a key that names none. */
export const USUAL_SCOPES: readonly Scope[] = ["read", "submit"];

/** Used if no keys are required: everybody may do everything, and transactions have no owner. */
export const ANYBODY: Principal = {
  ...{ name: null, scopes: new Set(SCOPES), signers: null, chains: null },
  ...NO_QUOTAS,
};

export function isLimited({ signers, chains }: Limits): boolean {
  return signers !== null || chains !== null;
}

export function isWithin({ signers, chains }: Limits, { signer, chainId }: Lane): boolean {
  return (signers === null || signers.has(signer)) && (chains === null || chains.has(chainId));
}

/** Throws FORBIDDEN if the caller named a lane outside its key's signers and chains. */
export function refuseOutside({ signers, chains }: Limits, { signer, chainId }: Partial<Lane>): void {
  if (signer !== undefined && signers?.has(signer) === false) {
    throw forbidden("signers", `this API key is not for the signer ${signer}`);
  }
  if (chainId !== undefined && chains?.has(chainId) === false) {
    throw forbidden("chains", `this API key is not for chain ${chainId}`);
  }
}

/** Throws FORBIDDEN for a request that is not about one signer or chain, if the key is limited to some. */
export function refuseLimited(limits: Limits, detail: string): void {
  if (isLimited(limits)) throw forbidden(limits.signers === null ? "chains" : "signers", detail);
}

/** True if this key is the owner. Without an owner, no key is. */
export function isOwn({ name }: Principal, owner: string | null): boolean {
  return name !== null && name === owner;
}

/** True if two known keys differ. Transactions from before ownership may be repeated by any key. */
export function isAnothers(owner: string | null, asking: string | null): boolean {
  return owner !== null && asking !== null && owner !== asking;
}

/** The error does not name the other key's transaction. */
export function anothersRequestId(requestId: string | null): FencepostError {
  return new FencepostError("REQUEST_ID_REUSED", `request id ${requestId} belongs to another API key`);
}

/** Its transaction was deleted by retention: its owner and contents are unknown, but it must not be sent again. */
export function spentRequestId(requestId: string | null): FencepostError {
  const detail = `request id ${requestId} belongs to a transaction that was final longer ago than the retention and is kept no more; nothing new was accepted`;
  return new FencepostError("REQUEST_ID_REUSED", detail);
}

export function forbidden(rule: string, detail: string): FencepostError {
  return new FencepostError("FORBIDDEN", detail, { rule });
}
