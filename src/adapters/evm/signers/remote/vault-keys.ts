/**
 * Private keys in the KV engine of HashiCorp Vault, read once at start and then held in this process. Vault's transit
 * engine could sign without giving the key out, but has no secp256k1.
 */
import { BadKey } from "../private-keys.ts";
import { openServiceHttp, refusal, type SignerPorts, textOf } from "./key-service.ts";

/** Reads private keys in hex, in the order of the paths. */
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
      const { status, members } = await http.ask({ url: new URL(`/v1/${path}`, address).href, headers });
      if (status !== 200)
        throw refusal(`Vault, asked for the secret ${path},`, status, textOf(Object(members.errors)[0]));
      // Version 2 of the KV engine nests the secret one level deeper than version 1.
      const secret = Object(members.data);
      const key: unknown = Object(secret.data).privateKey ?? secret.privateKey;
      if (typeof key !== "string") throw new BadKey(`Vault's ${path} has no field privateKey`);
      keys.push(key);
    }
    return keys;
  } finally {
    await http.close();
  }
}
