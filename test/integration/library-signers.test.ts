/** Every source of signers of docs/embed.md, as an option of createFencepost: each sends a transaction that is mined. */
import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { verifyMessage } from "viem";
import { mnemonicToAccount, privateKeyToAccount, toAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { toSigningKey } from "../../src/adapters/evm/signers/private-keys.ts";
import { createFencepost, type FencepostOptions } from "../../src/index.ts";
import { type DevChain, startEmbeddedChain } from "../../src/main/dev/embedded/start-chain.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { BLOCK_TIME_MS, KEYS, OTHER_SIGNER, RECIPIENT, SIGNER } from "../support/integration.ts";
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
  readonly close?: () => Promise<unknown>;
}
interface OpenedService extends Opened {
  /** Environment variables under the names that the service's own tools read. */
  readonly variables: Readonly<Record<string, string>>;
}

const account = privateKeyToAccount(KEY);

/** Key services that are found by environment variables. */
const SERVICES: Readonly<Record<string, () => Promise<OpenedService>>> = {
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
};

const KINDS: Readonly<Record<string, () => Promise<Opened>>> = {
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

let chain: DevChain;
let database: TestDatabase;
beforeAll(async () => {
  [chain, database] = await Promise.all([startEmbeddedChain({ blockTimeMs: BLOCK_TIME_MS }), createTestDatabase()]);
});
afterAll(async () => {
  await chain?.stop();
  await database?.drop();
});

const optionsWith = (signers: Signers) => ({
  databaseUrl: database.url,
  chains: [{ rpc: chain.url, confirmations: 1, pollInterval: "50ms" as const }],
  ...signers,
});
const intentOf = (kind: string, signer = SIGNER) =>
  ({ signer, requestId: kind, payload: { to: RECIPIENT, value: "1" } }) as const;

describe("createFencepost", () => {
  // protects [The SDK and the library] src/main/library.ts, src/main/library/signers-option.ts
  it(`signs with ${Object.keys(SERVICES).join(", ")}, found by environment variables`, async () => {
    const opened = await Promise.all(Object.values(SERVICES).map((open) => open()));
    onTestFinished(async () => void (await Promise.all(opened.map(({ close }) => close?.()))));
    const variables = Object.assign({}, ...opened.map((each) => each.variables)) as OpenedService["variables"];
    const sends = Object.keys(SERVICES).map((kind, at) => ({
      options: optionsWith(opened[at]?.signers ?? {}),
      intent: intentOf(kind),
    }));
    const child = spawnScript([SENDS, JSON.stringify(sends)], { variables });
    expect({ ...(await child.exited), said: child.stderr() }).toMatchObject({ code: 0, said: "" });
    expect(JSON.parse(child.stdout())).toEqual(sends.map(() => ({ state: "CONFIRMED", signer: SIGNER })));
  });

  // protects [The SDK and the library] src/main/library.ts, src/main/library/signers-option.ts
  it.for(Object.entries(KINDS))("signs with %s", async ([kind, open]) => {
    const { signers, close } = await open();
    if (close !== undefined) onTestFinished(async () => void (await close()));
    const signer = kind === "a mnemonic" ? mnemonicToAccount(MNEMONIC).address : SIGNER;
    const fencepost = await createFencepost(optionsWith(signers));
    onTestFinished(() => fencepost.close());
    const sent = await fencepost.send(intentOf(kind, signer));
    expect(await sent.final({ timeoutMs: 60_000 })).toMatchObject({ state: "CONFIRMED", signer });
    const message = "Log in to the shop: 8fd2a1";
    const personal = [{ name: "login", prefix: "Log in to the shop", maxLength: 100 }];
    await fencepost.applyPolicies({ policies: { signers: { "*": { messages: { personal } } } }, reason: "a test" });
    const sign = () => fencepost.sign({ signer, requestId: `message by ${kind}`, message });
    const { signature, state, rule } = await sign();
    expect({ state, rule }).toEqual({ state: "SIGNED", rule: "login" });
    expect(await verifyMessage({ address: signer, message, signature: signature as `0x${string}` })).toBe(true);
    expect(await sign()).toMatchObject({ signature });
    const refused = fencepost.sign({ signer, message: "anything else" });
    await expect(refused).rejects.toMatchObject({ code: "FORBIDDEN", rule: "signer.messages.login.prefix" });
  });

  it("uses no signature of a viem account that signed something else", async () => {
    const events: string[] = [];
    // A signer that no other test of this file uses: its transaction stays unsent.
    const other = privateKeyToAccount(KEYS[1]);
    const lying = toAccount({
      ...other,
      signTransaction: async (transaction) => other.signTransaction({ ...transaction, value: 2n } as never),
    });
    const fencepost = await createFencepost({
      ...optionsWith({ signers: [lying] }),
      onEvent: (event) =>
        events.push(JSON.stringify(event, (_, value) => (typeof value === "bigint" ? `${value}` : value))),
    });
    onTestFinished(() => fencepost.close());
    const sent = await fencepost.send({ signer: OTHER_SIGNER, payload: { to: RECIPIENT, value: 1n } });
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
