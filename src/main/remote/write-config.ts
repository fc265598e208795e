/** `fencepost init`: writes a configuration file to fill in. */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { CommandFailed } from "../../adapters/cli/failure.ts";
import { CONFIG_FILES } from "../config/file.ts";

export async function writeConfig(directory: string, named?: string): Promise<{ readonly file: string }> {
  const [usual] = CONFIG_FILES;
  const file = named ?? usual;
  const inTheWay = (named === undefined ? CONFIG_FILES : [named]).find((name) => existsSync(resolve(directory, name)));
  if (inTheWay !== undefined) throw taken(inTheWay);
  // `wx` fails if the file was created meanwhile.
  await writeFile(resolve(directory, file), TEMPLATE, { flag: "wx" }).catch((cause: NodeJS.ErrnoException) => {
    throw cause.code === "EEXIST" ? taken(file) : cause;
  });
  return { file };
}

function taken(file: string) {
  return new CommandFailed([`${file} exists already, and is not changed: edit it, or check it with fencepost doctor`]);
}

const TEMPLATE = `// Fencepost's configuration. Every key has an environment variable, FENCEPOST_ and the key, that wins over this file:
// keep secrets there. \`fencepost config\` shows what is in force and where it comes from, \`fencepost doctor\` whether it
// works. All settings: node_modules/fencepost/docs/configuration.md
import { defineConfig } from "fencepost/config";

export default defineConfig({
  // PostgreSQL 15 or newer, the only state that must not be lost.
  // FENCEPOST_DATABASE_URL=postgres://user:password@127.0.0.1:5432/fencepost

  // RPC endpoints of the chain. Use two providers, comma-separated or in a list: a single one is trusted, two must agree.
  rpcUrl: "http://127.0.0.1:8545",
  // Several chains instead:
  // chains: [
  //   { id: 1, rpc: ["https://one.example", "https://other.example"], finality: "finalized" },
  //   { id: 8453, rpc: "https://base.example", confirmations: 30 },
  // ],

  // Signers. A directory of encrypted keys (\`fencepost keys new\`) or a key service; for a first try,
  // FENCEPOST_PRIVATE_KEYS=0x…
  // keystoreDir: "./keys",
  // keystorePasswordFile: "./keystore-password",

  // Callers. FENCEPOST_API_KEYS=name:secret:read+submit+operate (openssl rand -base64 24). On this machine alone, none:
  // auth: "none",

  host: "127.0.0.1",
  port: 3000,

  // URL by which other nodes reach this one, if there are several.
  // advertiseUrl: "http://10.0.0.1:3000",

  // Blocks until an outcome is final, and the most that a transaction may cost.
  confirmations: 20,
  // maxFeeGwei: 200,
});
`;
