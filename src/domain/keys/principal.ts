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

/** The authenticated caller. Determined once, when a request arrives, before anything is read for the request. */
export interface Principal extends Limits, Quotas {
  /** Name of the API key, which becomes the owner of everything that it creates. Null if this node requires no keys. */
  readonly name: string | null;
  readonly scopes: ReadonlySet<Scope>;
}

/** The only signers and chains that an API key may see and use; null for all. */
export interface Limits {
  readonly signers: ReadonlySet<Address> | null;
  readonly chains: ReadonlySet<number> | null;
}

/** Share of the nodes' and lanes' capacity that an API key may use; null for unlimited. */
export interface Quotas {
  /** Maximum number of creates, batch items and reservations per second, on each node. */
  readonly createsPerSecond: number | null;
  /** Maximum number of the key's calls to a chain through `/rpc` per second, on each node. */
  readonly readsPerSecond: number | null;
  /** Share of a lane's queue that the key may fill: above 0, at most 1. */
  readonly queueShare: number | null;
}

/** Limits of an API key that apply to creates. */
export interface CreateLimits extends Limits, Partial<Pick<Quotas, "queueShare">> {}

/** Highest value that a rate quota may have. */
export const MOST_PER_SECOND = 1_000_000;

/**
 * True for a valid queue share. It has at most four decimals, because the database's 4-byte float stores those exactly.
 */
export function isQueueShare(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value <= 1 && Math.round(value * 10_000) / 10_000 === value;
}

export const NO_QUOTAS: Quotas = { createsPerSecond: null, readsPerSecond: null, queueShare: null };

/** Default scopes, for an API key whose definition names none. */
export const USUAL_SCOPES: readonly Scope[] = ["read", "submit"];

/** The principal if no API keys are required: every caller may do everything, and transactions have no owner. */
export const ANYBODY: Principal = {
  name: null,
  scopes: new Set(SCOPES),
  signers: null,
  chains: null,
  ...NO_QUOTAS,
};

export function isLimited({ signers, chains }: Limits): boolean {
  return signers !== null || chains !== null;
}

export function isWithin({ signers, chains }: Limits, { signer, chainId }: Lane): boolean {
  return (signers === null || signers.has(signer)) && (chains === null || chains.has(chainId));
}

/** The signers, or the chains, that a query and the key's limit have in common; null for all. */
export function permitted<T>(named: T | undefined, limit: ReadonlySet<T> | null = null): readonly T[] | null {
  if (named === undefined) return limit && [...limit];
  return limit?.has(named) === false ? [] : [named];
}

/** Throws FORBIDDEN if the caller named a lane outside its key's signers and chains. */
export function refuseOutside({ signers, chains }: Limits, { signer, chainId }: Partial<Lane>): void {
  if (signer !== undefined && signers?.has(signer) === false) {
    throw forbidden("signers", `this API key may not use the signer ${signer}`);
  }
  if (chainId !== undefined && chains?.has(chainId) === false) {
    throw forbidden("chains", `this API key may not use chain ${chainId}`);
  }
}

/**
 * For requests that are not about one signer or chain: throws FORBIDDEN if the key is limited to certain signers or
 * chains.
 */
export function refuseLimited(limits: Limits, detail: string): void {
  if (isLimited(limits)) throw forbidden(limits.signers === null ? "chains" : "signers", detail);
}

/** True if this key owns the object. An object without an owner belongs to no key. */
export function isOwn({ name }: Principal, owner: string | null): boolean {
  return name !== null && name === owner;
}

/**
 * True if both API keys are known and differ. An old transaction may have no recorded owner: then any key may repeat
 * its request id.
 */
export function isAnothers(owner: string | null, asking: string | null): boolean {
  return owner !== null && asking !== null && owner !== asking;
}

/** Error for a request id of another key; it does not name that key's transaction. */
export function anothersRequestId(requestId: string | null): FencepostError {
  return new FencepostError("REQUEST_ID_REUSED", `request id ${requestId} belongs to another API key`);
}

/**
 * Error for a request id whose transaction was deleted by retention: its owner and contents are unknown, but it must
 * not be sent again.
 */
export function spentRequestId(requestId: string | null): FencepostError {
  const detail = `request id ${requestId} belongs to a transaction that was final longer ago than the retention and is kept no more; nothing new was accepted`;
  return new FencepostError("REQUEST_ID_REUSED", detail);
}

export function forbidden(rule: string, detail: string): FencepostError {
  return new FencepostError("FORBIDDEN", detail, { rule });
}
