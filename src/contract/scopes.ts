import type { Scope } from "../domain/principal.ts";

/** What a route asks of the API key that is shown. */
export interface RouteScope {
  readonly scope: Scope;
  /** As good. */
  readonly or?: Scope;
  /** Of no use to the key that made the transaction: another one has to look at it. */
  readonly othersOnly?: true;
  /** Enough where the transaction or the reservation belongs to that key. */
  readonly own?: Scope;
}

const read: RouteScope = { scope: "read" };
const submit: RouteScope = { scope: "submit" };
const operate: RouteScope = { scope: "operate" };
const admin: RouteScope = { scope: "admin" };
/** Whoever may stop one thing, or give others their keys, may stop everything; to send again is `admin`'s alone. */
const kill: RouteScope = { scope: "operate", or: "admin" };
const approve: RouteScope = { scope: "approve", othersOnly: true };
/** Enough to come in: each call of a packet is asked for its own. */
const rpc: RouteScope = { scope: "read", or: "submit" };
/** One's own reservation; anybody else's is an operator's. */
const ownReservation: RouteScope = { scope: "operate", own: "reserve" };

/** Of routes that none of these open, only those who run the nodes have any use. */
const CALLERS_SCOPES: readonly Scope[] = ["read", "submit", "reserve", "sign"];

export function isOperators({ scope, or, own }: RouteScope): boolean {
  return !CALLERS_SCOPES.some((each) => each === scope || each === or || each === own);
}

/** Every route that is not open, by method and path. A route that is not here cannot be registered. */
export const ROUTE_SCOPES: Readonly<Record<string, RouteScope>> = {
  "post /api/v1/tx": submit,
  "post /api/v1/tx/batch": submit,
  "get /api/v1/tx": read,
  "get /api/v1/tx/{txId}": read,
  "get /api/v1/tx/{txId}/explain": read,
  "get /api/v1/tx/by-request": read,
  "get /api/v1/tx/completions": read,
  "post /api/v1/tx/{txId}/cancel": { scope: "operate", own: "submit" },
  "post /api/v1/tx/{txId}/resubmit": operate,
  "post /api/v1/tx/{txId}/reprice": operate,
  "post /api/v1/tx/{txId}/replace": operate,
  "post /api/v1/tx/{txId}/resolve": operate,
  "post /api/v1/tx/{txId}/approve": approve,
  "post /api/v1/tx/{txId}/reject": approve,
  "post /api/v1/tx/{txId}/suspend": operate,
  "post /api/v1/tx/{txId}/resume": operate,
  "post /api/v1/nonces": { scope: "reserve" },
  "get /api/v1/nonces/{reservationId}": read,
  "post /api/v1/nonces/{reservationId}/submit": ownReservation,
  "post /api/v1/nonces/{reservationId}/used": ownReservation,
  "post /api/v1/nonces/{reservationId}/release": ownReservation,
  "get /api/v1/signers": read,
  "get /api/v1/signers/{signer}": read,
  "post /api/v1/signers/{signer}/suspend": operate,
  "post /api/v1/signers/{signer}/resume": operate,
  "post /api/v1/signers/{signer}/realign": operate,
  "post /api/v1/kill": kill,
  "delete /api/v1/kill": admin,
  "post /api/v1/signers/{signer}/kill": kill,
  "delete /api/v1/signers/{signer}/kill": admin,
  "post /api/v1/policy/check": { scope: "read", or: "submit" },
  "get /api/v1/policy": read,
  "put /api/v1/policy": admin,
  "get /api/v1/policy/usage": read,
  "get /api/v1/attention": read,
  "get /api/v1/overview": read,
  "get /api/v1/search": read,
  "get /api/v1/signers/{signer}/nonces": read,
  "get /api/v1/notices": read,
  "post /api/v1/notices/{noticeId}/acknowledge": operate,
  "get /api/v1/cluster/history": read,
  "get /api/v1/nodes": read,
  "get /api/v1/leases": read,
  "get /api/v1/keys": admin,
  "post /api/v1/keys": admin,
  "delete /api/v1/keys/{name}": admin,
  "get /metrics": read,
  "post /rpc": rpc,
  "post /rpc/{chainId}": rpc,
};
