import type { Quotas, Scope } from "../domain/keys/principal.ts";
import type { Address } from "../domain/lane.ts";

/** Permissions of an API key. */
export interface KeyTerms extends Quotas {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Signers that the API key may use; null: all. `chains` likewise limits the chains. */
  readonly signers: readonly Address[] | null;
  readonly chains: readonly number[] | null;
}

export interface KeyRecord extends KeyTerms {
  readonly createdAt: Date;
  /** Secrets of the API key, oldest first: two while the secret is being rotated. Empty: the key cannot be used. */
  readonly secrets: readonly KeySecret[];
}

export interface KeySecret {
  /** SHA-256 of the secret in hex. The secret itself is not stored. */
  readonly digest: string;
  readonly createdAt: Date;
}

/**
 * API keys that are managed while nodes run. Each change is recorded with its author in the same database transaction.
 */
export interface KeyStore {
  apiKeys(): Promise<readonly KeyRecord[]>;
  /**
   * Adds a secret to an API key, and creates the key if it does not exist. "differs": the key exists with other
   * permissions. "full": the key has two secrets. In both cases nothing is changed.
   */
  addApiSecret(key: KeyTerms, digest: string, actor: string): Promise<"added" | "differs" | "full">;
  /** Removes one secret, by the beginning of its digest, or the whole API key. Returns false if there was none. */
  revokeApiKey(name: string, secret: string | null, actor: string): Promise<boolean>;
}
