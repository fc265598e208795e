import type { Address } from "./lane.ts";

/** What an API key may do: look, create, keep nonces, act on any transaction and lane, approve, sign messages, manage keys. */
export const SCOPES = ["read", "submit", "reserve", "operate", "approve", "sign", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** Who asks. Decided once, where a request comes in, and before anything is looked up for it. */
export interface Principal {
  /** Of the API key that was shown: what it makes belongs to this name. Null: no key is asked for here. */
  readonly name: string | null;
  readonly scopes: ReadonlySet<Scope>;
  /** The only signers and chains that it may see and use; null: all. */
  readonly signers: ReadonlySet<Address> | null;
  readonly chains: ReadonlySet<number> | null;
}

/** Of a key that names no scopes. */
export const USUAL_SCOPES: readonly Scope[] = ["read", "submit"];

/** Where no key is asked for, everybody may do everything, and what they make belongs to nobody. */
export const ANYBODY: Principal = { name: null, scopes: new Set(SCOPES), signers: null, chains: null };
