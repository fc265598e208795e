import type { Address } from "../../../domain/lane.ts";
import { createLocalSigner, type KeySources, type LocalSigner, type LocalSignerOptions } from "./local-signer.ts";
import { BadKey } from "./private-keys.ts";
import type { RemoteKey, SignerPorts } from "./remote/key-service.ts";
import type { SigningAccount } from "./remote/viem-account.ts";
import type { RemoteSignerSource } from "./remote/web3signer.ts";

/** Sources of signers, in any combination, as in the configuration. */
export interface SignerSources extends KeySources {
  readonly remote?: RemoteSignerSource | null;
  readonly awsKmsKeyIds?: readonly string[];
  readonly gcpKmsKeyVersions?: readonly string[];
  readonly vaultKeyPaths?: readonly string[];
  /** Accounts of viem, which the embedding program passes as objects. */
  readonly accounts?: readonly SigningAccount[];
}

export interface OpenSignerOptions extends SignerPorts, Omit<LocalSignerOptions, "keys"> {
  readonly sources: SignerSources;
}

/** Opens one signer for all configured sources. Code for sources that are not configured is not loaded. */
export async function openSigner(options: OpenSignerOptions): Promise<LocalSigner> {
  const opened: Pick<LocalSigner, "close">[] = [];
  const close = async () => void (await Promise.all(opened.map((each) => each.close())));
  try {
    const keys: RemoteKey[] = [];
    for await (const service of openServices(options)) {
      opened.push(service);
      keys.push(...service.keys);
    }
    const sources = { ...options.sources, privateKeys: await heldKeys(options) };
    const local = await createLocalSigner({ ...options, keys: sources });
    opened.push(local);
    const remote = byAddress(keys, local);
    return {
      ...local,
      addresses: () => [...local.addresses(), ...remote.keys()],
      sign: (address, transactions) => remote.get(address)?.sign(transactions) ?? local.sign(address, transactions),
      signMessages: (address, messages) =>
        remote.get(address)?.signMessages(messages) ?? local.signMessages(address, messages),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens the key services one after another. If one fails, those already open are closed. */
async function* openServices(options: OpenSignerOptions) {
  const { remote = null, awsKmsKeyIds: aws = [], gcpKmsKeyVersions: gcp = [], accounts = [] } = options.sources;
  if (accounts.length > 0) {
    const { viemAccountKey } = await import("./remote/viem-account.ts");
    yield { keys: accounts.map(viemAccountKey), close: async () => undefined };
  }
  if (remote !== null) yield (await import("./remote/web3signer.ts")).openWeb3Signer(remote, options);
  if (aws.length > 0) yield (await import("./remote/aws-kms.ts")).openAwsKms(aws, options);
  if (gcp.length > 0) yield (await import("./remote/gcp-kms.ts")).openGcpKms(gcp, options);
}

/** Reads Vault's keys at start; this process holds them from then on. */
async function heldKeys(options: OpenSignerOptions) {
  const { privateKeys = [], vaultKeyPaths: paths = [] } = options.sources;
  if (paths.length === 0) return privateKeys;
  return [...privateKeys, ...(await (await import("./remote/vault-keys.ts")).readVaultKeys(paths, options))];
}

/** Refuses an address with two sources: two key holders could sign different payloads for one nonce. */
function byAddress(keys: readonly RemoteKey[], local: LocalSigner): ReadonlyMap<Address, RemoteKey> {
  const all = [...local.addresses(), ...keys.map(({ address }) => address)];
  const twice = all.find((address, index) => all.indexOf(address) < index);
  if (twice !== undefined) throw new BadKey(`${twice}: is configured in two signer sources`);
  return new Map(keys.map((key) => [key.address, key]));
}
