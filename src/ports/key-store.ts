import type { Quotas, Scope } from "../domain/keys/principal.ts";
import type { Address } from "../domain/lane.ts";

/** Permissions of an API key. */
export interface KeyTerms extends Quotas {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Null: all. */
  readonly signers: readonly Address[] | null;
  readonly chains: readonly number[] | null;
}

export interface KeyRecord extends KeyTerms {
  readonly createdAt: Date;
  /** Empty: the key cannot be used. Two during rotation, the older first. */
  readonly secrets: readonly KeySecret[];
}

export interface KeySecret {
  /** SHA-256 in hex. The secret is not stored. */
  readonly digest: string;
  readonly createdAt: Date;
}

/** API keys that are managed while nodes run. Each change is recorded with its author in the same transaction. */
export interface KeyStore {
  apiKeys(): Promise<readonly KeyRecord[]>;
  /**
   * Adds a secret to a key, and creates the key if it does not exist. "differs": it exists with other permissions.
   * "full": it has two secrets. Neither changes anything.
   */
  addApiSecret(key: KeyTerms, digest: string, actor: string): Promise<"added" | "differs" | "full">;
  /** Removes one secret, by the beginning of its digest, or the whole key. False if there was none. */
  revokeApiKey(name: string, secret: string | null, actor: string): Promise<boolean>;
}
