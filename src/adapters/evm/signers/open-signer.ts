import type { Address } from "../../../domain/lane.ts";
import { createLocalSigner, type KeySources, type LocalSigner, type LocalSignerOptions } from "./local-signer.ts";
import { BadKey } from "./private-keys.ts";
import { type RemoteKey, signEach } from "./remote/remote-key.ts";
import type { RemoteSignerPorts, RemoteSignerSource } from "./remote/web3signer.ts";

/** Where signers come from; any combination, in the shape the configuration has. */
export interface SignerSources extends KeySources {
  readonly remote?: RemoteSignerSource | null;
  readonly awsKmsKeyIds?: readonly string[];
  readonly gcpKmsKeyVersions?: readonly string[];
  readonly vaultKeyPaths?: readonly string[];
}

export interface OpenSignerOptions extends RemoteSignerPorts, Omit<LocalSignerOptions, "keys"> {
  readonly sources: SignerSources;
  /** What AWS, Google Cloud and Vault are told by: regions, credentials, addresses, by the names that their own tools read. */
  readonly environment: Readonly<Record<string, string | undefined>>;
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
    for (const open of backEnds(options)) opened.push(await open());
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
      close: async () => {
        await closeAll();
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function backEnds({ sources, environment, clock, warn }: OpenSignerOptions): readonly (() => Promise<Opened>)[] {
  const { remote = null, awsKmsKeyIds: aws = [], gcpKmsKeyVersions: gcp = [] } = sources;
  const openRemote = async (source: RemoteSignerSource) => {
    const { openWeb3Signer } = await import("./remote/web3signer.ts");
    return openWeb3Signer(source, { clock, warn });
  };
  const openAws = async () => (await import("./remote/aws-kms.ts")).openAwsKms(aws, clock, environment);
  const openGcp = async () => (await import("./remote/gcp-kms.ts")).openGcpKms(gcp, { clock, environment, warn });
  return [
    ...(remote === null ? [] : [() => openRemote(remote)]),
    ...(aws.length === 0 ? [] : [openAws]),
    ...(gcp.length === 0 ? [] : [openGcp]),
  ];
}

/** Read from Vault, and held here from then on. */
async function heldKeys({ sources, clock, environment }: OpenSignerOptions): Promise<readonly string[]> {
  const { privateKeys = [], vaultKeyPaths: paths = [] } = sources;
  if (paths.length === 0) return privateKeys;
  const { readVaultKeys } = await import("./remote/vault-keys.ts");
  return [...privateKeys, ...(await readVaultKeys(paths, clock, environment))];
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
