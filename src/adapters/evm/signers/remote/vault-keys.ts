/**
 * Private keys in the KV engine of HashiCorp Vault, read once at start and then held in this process. Vault's transit
 * engine could sign without giving the key out, but has no secp256k1.
 */
import { BadKey } from "../private-keys.ts";
import { refusal } from "./key-service.ts";
import { membersOf, openServiceHttp, type SignerPorts, textOf } from "./service-http.ts";

/** Hex keys, in the order of the paths. */
export async function readVaultKeys(
  paths: readonly string[],
  { clock, environment }: SignerPorts,
): Promise<readonly string[]> {
  const { VAULT_ADDR: address, VAULT_TOKEN: token, VAULT_NAMESPACE: namespace } = environment;
  if (!address || !token) throw new BadKey("VAULT_ADDR and VAULT_TOKEN must be set to read keys from Vault");
  const headers = { "x-vault-token": token, ...(namespace ? { "x-vault-namespace": namespace } : {}) };
  const http = openServiceHttp(clock);
  try {
    const keys: string[] = [];
    for (const path of paths) {
      const { status, text } = await http.ask({ method: "GET", url: new URL(`/v1/${path}`, address).href, headers });
      const { data, errors } = membersOf(text) as { data?: VaultSecret; errors?: readonly unknown[] };
      if (status !== 200) throw refusal(`Vault's ${path}`, status, textOf(errors?.[0]));
      const key = data?.data?.privateKey ?? data?.privateKey;
      if (typeof key !== "string") throw new BadKey(`Vault's ${path} has no field privateKey`);
      keys.push(key);
    }
    return keys;
  } finally {
    await http.close();
  }
}

/** Version 2 of the KV engine nests the secret one level deeper than version 1. */
interface VaultSecret {
  readonly data?: { readonly privateKey?: unknown } | null;
  readonly privateKey?: unknown;
}
