import type { Address } from "../../../domain/lane.ts";
import { createLocalSigner, type KeySources, type LocalSigner, type LocalSignerOptions } from "./local-signer.ts";
import { BadKey } from "./private-keys.ts";
import { type RemoteKey, signEach } from "./remote/remote-key.ts";
import type { SignerPorts } from "./remote/service-http.ts";
import type { RemoteSignerSource } from "./remote/web3signer.ts";

/** Where signers come from; any combination, in the shape the configuration has. */
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

/** Every signer that is configured, behind one port. What is not configured is not loaded either. */
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

/** Each service is opened before the next: those that are open are closed if a later one fails. */
async function* openServices(options: OpenSignerOptions): AsyncGenerator<Opened> {
  const { remote = null, awsKmsKeyIds: aws = [], gcpKmsKeyVersions: gcp = [] } = options.sources;
  if (remote !== null) yield (await import("./remote/web3signer.ts")).openWeb3Signer(remote, options);
  if (aws.length > 0) yield (await import("./remote/aws-kms.ts")).openAwsKms(aws, options);
  if (gcp.length > 0) yield (await import("./remote/gcp-kms.ts")).openGcpKms(gcp, options);
}

/** Keys of Vault are read at start, and held in this process from then on. */
async function heldKeys(options: OpenSignerOptions): Promise<readonly string[]> {
  const { privateKeys = [], vaultKeyPaths: paths = [] } = options.sources;
  if (paths.length === 0) return privateKeys;
  return [...privateKeys, ...(await (await import("./remote/vault-keys.ts")).readVaultKeys(paths, options))];
}

/** One key in two places would have two opinions about what may be signed. */
function byAddress(keys: readonly RemoteKey[], local: LocalSigner): ReadonlyMap<Address, RemoteKey> {
  const named = new Map<Address, RemoteKey>();
  const here = new Set(local.addresses());
  for (const key of keys) {
    if (here.has(key.address) || named.has(key.address))
      throw new BadKey(`${key.address}: is named by two kinds of signers`);
    named.set(key.address, key);
  }
  return named;
}
