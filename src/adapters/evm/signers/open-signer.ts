import type { Address } from "../../../domain/lane.ts";
import { createLocalSigner, type KeySources, type LocalSigner, type LocalSignerOptions } from "./local-signer.ts";
import { BadKey } from "./private-keys.ts";
import { type RemoteKey, signEach } from "./remote/remote-key.ts";
import type { SignerPorts } from "./remote/service-http.ts";
import type { RemoteSignerSource } from "./remote/web3signer.ts";

/** Sources of signers, in any combination, in the shape of the configuration. */
export interface SignerSources extends KeySources {
  readonly remote?: RemoteSignerSource | null;
  readonly awsKmsKeyIds?: readonly string[];
  readonly gcpKmsKeyVersions?: readonly string[];
  readonly vaultKeyPaths?: readonly string[];
}

export interface OpenSignerOptions extends SignerPorts, Omit<LocalSignerOptions, "keys"> {
  readonly sources: SignerSources;
}

interface Opened {
  readonly keys: readonly RemoteKey[];
  close(): Promise<void>;
}

/** One signer for every configured source. Code for sources that are not configured is not loaded. */
export async function openSigner(options: OpenSignerOptions): Promise<LocalSigner> {
  const opened: Opened[] = [];
  const closeAll = () => Promise.all(opened.map((each) => each.close()));
  try {
    for await (const service of openServices(options)) opened.push(service);
    const keys = { ...options.sources, privateKeys: await heldKeys(options) };
    const local = await createLocalSigner({ ...options, keys });
    opened.push({ keys: [], close: () => local.close() });
    const remote = byAddress(
      opened.flatMap(({ keys }) => keys),
      local,
    );
    return {
      curve: local.curve,
      addresses: () => [...local.addresses(), ...remote.keys()],
      custody: (address) => local.custody(address),
      sign: (address, transactions) => {
        const key = remote.get(address);
        return key === undefined ? local.sign(address, transactions) : signEach(key, transactions);
      },
      close: async () => void (await closeAll()),
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Opens one service after another: those that are open are closed if a later one fails. */
async function* openServices(options: OpenSignerOptions): AsyncGenerator<Opened> {
  const { remote = null, awsKmsKeyIds: aws = [], gcpKmsKeyVersions: gcp = [] } = options.sources;
  if (remote !== null) yield (await import("./remote/web3signer.ts")).openWeb3Signer(remote, options);
  if (aws.length > 0) yield (await import("./remote/aws-kms.ts")).openAwsKms(aws, options);
  if (gcp.length > 0) yield (await import("./remote/gcp-kms.ts")).openGcpKms(gcp, options);
}

/** Reads Vault's keys at start; this process holds them from then on. */
async function heldKeys(options: OpenSignerOptions): Promise<readonly string[]> {
  const { privateKeys = [], vaultKeyPaths: paths = [] } = options.sources;
  if (paths.length === 0) return privateKeys;
  return [...privateKeys, ...(await (await import("./remote/vault-keys.ts")).readVaultKeys(paths, options))];
}

/** Refuses an address with two sources: two key holders could sign different payloads for one nonce. */
function byAddress(keys: readonly RemoteKey[], local: LocalSigner): ReadonlyMap<Address, RemoteKey> {
  const named = new Map<Address, RemoteKey>();
  const here = new Set(local.addresses());
  for (const key of keys) {
    if (here.has(key.address) || named.has(key.address))
      throw new BadKey(`${key.address}: is configured in two signer sources`);
    named.set(key.address, key);
  }
  return named;
}
