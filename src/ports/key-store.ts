import type { Address } from "../domain/lane.ts";
import type { Quotas, Scope } from "../domain/principal.ts";

/** What an API key may do and see. */
export interface KeyTerms extends Quotas {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Null: all. */
  readonly signers: readonly Address[] | null;
  readonly chains: readonly number[] | null;
}

export interface KeyRecord extends KeyTerms {
  readonly createdAt: Date;
  /** None: nobody can show it. Two while it is rotated, the older first. */
  readonly secrets: readonly KeySecret[];
}

export interface KeySecret {
  /** SHA-256, in hex. The secret itself is kept nowhere. */
  readonly digest: string;
  readonly createdAt: Date;
}

/** API keys that are managed while the nodes run. Each change is noted with who made it, in the same transaction. */
export interface KeyStore {
  apiKeys(): Promise<readonly KeyRecord[]>;
  /**
   * One more secret of a key, which is made where there is none of that name. "differs": it exists on other terms; "full":
   * it has two secrets. Nothing is changed then.
   */
  addApiSecret(key: KeyTerms, digest: string, actor: string): Promise<"added" | "differs" | "full">;
  /** One of its secrets, by the beginning of its digest, or the key as a whole. False: there was none. */
  revokeApiKey(name: string, secret: string | null, actor: string): Promise<boolean>;
}
