/** Every source of signers of docs/embed.md, as an option of createFencepost: each sends a transaction that is mined. */
import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mnemonicToAccount, privateKeyToAccount, toAccount } from "viem/accounts";
import { describe, expect, onTestFinished } from "vitest";
import { toSigningKey } from "../../src/adapters/evm/signers/private-keys.ts";
import { createFencepost, type FencepostOptions } from "../../src/index.ts";
import { it, KEYS, RECIPIENT, SIGNER } from "../support/integration.ts";
import { AWS_KEY, startAwsKms, startGcpKms } from "../support/key-services.ts";
import { encryptKeystore } from "../support/keystore-writer.ts";
import { spawnScript } from "../support/node-process.ts";
import { startServiceServer } from "../support/service-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { startWeb3Signer } from "../support/web3signer.ts";

const KEY = KEYS[0] as `0x${string}`;
const VERSION = "projects/p/locations/global/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1";
const MNEMONIC = "test test test test test test test test test test test junk";

type Signers = Partial<FencepostOptions>;
interface Opened {
  readonly signers: Signers;
  /** Environment variables under the names that the service's own tools read. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly close?: () => Promise<unknown>;
}

const account = privateKeyToAccount(KEY);

const KINDS: Readonly<Record<string, () => Promise<Opened>>> = {
  "AWS KMS": async () => {
    const { url, close } = await startAwsKms({ "alias/payouts": KEY });
    const credentials = { AWS_ACCESS_KEY_ID: AWS_KEY.id, AWS_SECRET_ACCESS_KEY: AWS_KEY.secret };
    const variables = { AWS_ENDPOINT_URL_KMS: url, AWS_REGION: "eu-west-1", ...credentials };
    return { signers: { awsKmsKeyIds: ["alias/payouts"] }, variables, close };
  },
  "Google Cloud KMS": async () => {
    const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const { url, close } = await startGcpKms({ keys: { [VERSION]: KEY }, account: publicKey });
    const variables = {
      CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS: `${url}/`,
      GCE_METADATA_HOST: new URL(url).host,
    };
    return { signers: { gcpKmsKeyVersions: [VERSION] }, variables, close };
  },
  "HashiCorp Vault": async () => {
    const { url, close } = await startServiceServer(() => ({ body: { data: { data: { privateKey: KEY } } } }));
    return {
      signers: { vaultKeyPaths: ["secret/data/payouts"] },
      variables: { VAULT_ADDR: url, VAULT_TOKEN: "hvs.token-of-the-test" },
      close,
    };
  },
  Web3Signer: async () => {
    const { url, close } = await startWeb3Signer({ keys: [KEY], chainId: null });
    return { signers: { remoteSignerUrl: url, remoteSignerAddresses: [SIGNER] }, close };
  },
  "an encrypted keystore": async () => {
    const { path, remove } = await makeTemporaryDirectory();
    const key = toSigningKey(Buffer.from(KEY.slice(2), "hex"), "the test's key");
    const keystorePasswordFile = join(path, "password.txt");
    const secret = { mode: 0o600 };
    await writeFile(join(path, "key.json"), encryptKeystore(key, "a password", { kdf: "pbkdf2", cost: 2 }), secret);
    await writeFile(keystorePasswordFile, "a password", secret);
    return { signers: { keystoreDir: path, keystorePasswordFile }, close: remove };
  },
  "a mnemonic": async () => ({ signers: { mnemonic: MNEMONIC, mnemonicCount: 1 } }),
  "an account of viem": async () => ({ signers: { signers: [account] } }),
  "a private key": async () => ({ signers: { signers: [KEY] } }),
};

const SENDS = fileURLToPath(new URL("../support/library-sends.mjs", import.meta.url));

/** Sends in a process with these variables; resolves with the final state. */
async function sendApart(
  options: object,
  intent: object,
  variables: Readonly<Record<string, string>>,
): Promise<unknown> {
  const child = spawnScript([SENDS, JSON.stringify(options), JSON.stringify(intent)], { variables });
  expect({ ...(await child.exited), said: child.stderr() }).toMatchObject({ code: 0, said: "" });
  return JSON.parse(child.stdout());
}

describe("createFencepost", () => {
  // protects [The SDK and the library] src/main/library.ts, src/main/library/signers-option.ts
  it.for(Object.entries(KINDS))("signs with %s", async ([kind, open], { edr, database }) => {
    const { signers, variables, close } = await open();
    if (close !== undefined) onTestFinished(async () => void (await close()));
    const chains = [{ rpc: edr.url, confirmations: 1, pollInterval: "50ms" as const }];
    const options = { databaseUrl: database.url, chains, ...signers };
    const signer = kind === "a mnemonic" ? mnemonicToAccount(MNEMONIC).address : SIGNER;
    const intent = { signer, requestId: kind, payload: { to: RECIPIENT, value: "1" } } as const;
    const confirmed = { state: "CONFIRMED", signer };
    if (variables !== undefined) {
      expect(await sendApart(options, intent, variables)).toEqual(confirmed);
      return;
    }
    const fencepost = await createFencepost(options);
    onTestFinished(() => fencepost.close());
    const sent = await fencepost.send(intent);
    expect(await sent.final({ timeoutMs: 60_000 })).toMatchObject(confirmed);
  });

  it("uses no signature of a viem account that signed something else", async ({ edr, database }) => {
    const events: string[] = [];
    const lying = toAccount({
      ...account,
      signTransaction: async (transaction) => account.signTransaction({ ...transaction, value: 2n } as never),
    });
    const fencepost = await createFencepost({
      databaseUrl: database.url,
      chains: [{ rpc: edr.url, confirmations: 1, pollInterval: "50ms" }],
      signers: [lying],
      onEvent: (event) =>
        events.push(JSON.stringify(event, (_, value) => (typeof value === "bigint" ? `${value}` : value))),
    });
    onTestFinished(() => fencepost.close());
    const sent = await fencepost.send({ signer: SIGNER, payload: { to: RECIPIENT, value: 1n } });
    await expect(sent.mined({ timeoutMs: 2_000 })).rejects.toMatchObject({ code: "TIMEOUT" });
    expect((await sent.get()).attempts).toEqual([]);
    expect(events.join("\n")).toMatch(/signed another transaction than it was asked to: value differs/);
  });

  it("refuses a viem account whose keys should be in a process of their own", async () => {
    const options = { databaseUrl: "postgres://nobody@127.0.0.1:1/none", chains: [{ rpc: "http://127.0.0.1:1" }] };
    const starting = createFencepost({ ...options, signers: [account], signing: "process" });
    await expect(starting).rejects.toMatchObject({ code: "CONFIGURATION", path: "signing" });
  });
});
