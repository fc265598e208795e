import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { KEYS } from "./integration.ts";

/**
 * Writes a container's secrets to files as Docker and Kubernetes mount them: owned by root and readable for the
 * container.
 */
export async function mountedSecrets(
  directory: string,
  values: { readonly databaseUrl: string; readonly rpcUrl: string; readonly secret: string },
): Promise<string> {
  const secrets = join(directory, "secrets");
  await mkdir(secrets);
  const kept = {
    "database-url": values.databaseUrl,
    "rpc-url": values.rpcUrl,
    "signer-keys": KEYS[0],
    "api-keys": `app:${values.secret}`,
  };
  for (const [name, value] of Object.entries(kept)) {
    await writeFile(join(secrets, name), `${value}\n`);
    await chmod(join(secrets, name), 0o444);
  }
  return secrets;
}
