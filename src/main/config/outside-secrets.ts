import { readFile } from "node:fs/promises";
import type { SignerSources } from "../../adapters/evm/signers/open-signer.ts";

/** Environment variables with secrets that the SDKs of key services read. */
const TOKENS = ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "VAULT_TOKEN"];

/**
 * Secrets that are not in the configuration itself, to be masked. A file that cannot be read is skipped: the code that
 * uses it reports the error.
 */
export async function outsideSecrets(
  { keystore, privateKeyFiles = [], remote }: Pick<SignerSources, "keystore" | "privateKeyFiles" | "remote">,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<readonly string[]> {
  const files = [...privateKeyFiles, keystore?.passwordFile ?? null, remote?.keyFile ?? null];
  const texts = await Promise.all(files.map((file) => (file === null ? "" : readFile(file, "utf8").catch(() => ""))));
  const lines = texts.flatMap((text) => text.split("\n").map((line) => line.trim().replace(/^0x/i, "")));
  return [...lines.filter((line) => !line.startsWith("-----")), ...TOKENS.map((name) => variables[name] ?? "")];
}
