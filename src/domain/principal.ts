import { FencepostError } from "./errors.ts";
import type { Address, Lane } from "./lane.ts";

/** What an API key may do: look, create, keep nonces, act on any transaction and lane, approve, sign messages, manage keys. */
export const SCOPES = ["read", "submit", "reserve", "operate", "approve", "sign", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** What keys are called, and so what owns transactions. */
export const KEY_NAME = /^[\w.-]{1,64}$/;

/** Who asks. Decided once, where a request comes in, and before anything is looked up for it. */
export interface Principal extends Limits, Quotas {
  /** Of the API key that was shown: what it makes belongs to this name. Null: no key is asked for here. */
  readonly name: string | null;
  readonly scopes: ReadonlySet<Scope>;
}

/** The only signers and chains that a key may see and use; null: all. */
export interface Limits {
  readonly signers: ReadonlySet<Address> | null;
  readonly chains: ReadonlySet<number> | null;
}

/** How much of the nodes and of a lane a key may take up; null: as much as there is. */
export interface Quotas {
  /** On each node: creates, items of batches, reservations. */
  readonly createsPerSecond: number | null;
  /** On each node: questions of its own that are put to a chain at `/rpc`. */
  readonly readsPerSecond: number | null;
  /** The part of a lane's queue that it may fill: above 0, at most 1. */
  readonly queueShare: number | null;
}

/** What a create is held to. */
export interface CreateLimits extends Limits, Partial<Pick<Quotas, "queueShare">> {}

/** Of creates, and of reads. */
export const MOST_PER_SECOND = 1_000_000;

/** Four decimals: what a database keeps of it in four bytes is the same number. */
export function isQueueShare(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value <= 1 && Math.round(value * 10_000) / 10_000 === value;
}

export const NO_QUOTAS: Quotas = { createsPerSecond: null, readsPerSecond: null, queueShare: null };

/** Of a key that names no scopes. */
export const USUAL_SCOPES: readonly Scope[] = ["read", "submit"];

/** Where no key is asked for, everybody may do everything, and what they make belongs to nobody. */
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

/** Throws FORBIDDEN where the caller named a lane that its key has no business with. */
export function refuseOutside({ signers, chains }: Limits, { signer, chainId }: Partial<Lane>): void {
  if (signer !== undefined && signers?.has(signer) === false) {
    throw forbidden("signers", `this API key is not for the signer ${signer}`);
  }
  if (chainId !== undefined && chains?.has(chainId) === false) {
    throw forbidden("chains", `this API key is not for chain ${chainId}`);
  }
}

/** Throws FORBIDDEN for what is not about one signer or chain, and so not for a key that is limited to some. */
export function refuseLimited(limits: Limits, detail: string): void {
  if (isLimited(limits)) throw forbidden(limits.signers === null ? "chains" : "signers", detail);
}

/** Whether what belongs to `owner` was made by this key. What belongs to nobody is nobody's own. */
export function isOwn({ name }: Principal, owner: string | null): boolean {
  return name !== null && name === owner;
}

/** Two keys that are known to differ. What was made before keys owned anything may be repeated by any. */
export function isAnothers(owner: string | null, asking: string | null): boolean {
  return owner !== null && asking !== null && owner !== asking;
}

/** Which transaction it has is that key's business. */
export function anothersRequestId(requestId: string | null): FencepostError {
  return new FencepostError("REQUEST_ID_REUSED", `request id ${requestId} belongs to another API key`);
}

/** Whether it was this key's, and what it asked for, nobody knows any more; that it must not be sent again is certain. */
export function spentRequestId(requestId: string | null): FencepostError {
  const detail = `request id ${requestId} belongs to a transaction that was final longer ago than the retention and is kept no more; nothing new was accepted`;
  return new FencepostError("REQUEST_ID_REUSED", detail);
}

export function forbidden(rule: string, detail: string): FencepostError {
  return new FencepostError("FORBIDDEN", detail, { rule });
}
