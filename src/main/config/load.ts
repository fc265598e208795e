import { refuseImpossible, refuseMissing } from "./combinations.ts";
import { buildConfig, type Command, type Config, type ConfigFor, ConfigurationError } from "./config.ts";
import { readConfigFile, refuseOpenKeys } from "./file.ts";
import { outsideSecrets } from "./outside-secrets.ts";
import { type Reach, type Resolution, resolve, resolveReach } from "./resolve.ts";
import { unmaskedSecrets } from "./secrets.ts";
import type { ConfigFile, Flags, Sources } from "./sources.ts";

type Variables = Readonly<Record<string, string | undefined>>;

export interface ConfigRequest<C extends Command> {
  readonly command: C;
  readonly variables: Variables;
  readonly workingDirectory: string;
  /** Default value of the setting `nodeId`. */
  readonly nodeId: string;
  /** Configuration file to read instead of the one in the working directory. */
  readonly configPath?: string | undefined;
  readonly flags?: Flags;
}

/** Reads the configuration file and the environment. Throws a ConfigurationError with all mistakes. */
export async function loadConfig<C extends Command>(request: ConfigRequest<C>) {
  const file = await readConfigFile(request.workingDirectory, request.configPath);
  const { command, variables, flags = {}, nodeId } = request;
  const loaded = configFrom({ command, variables, flags, file }, nodeId);
  const signing = loaded.config.signing ?? (command === "start" ? "process" : "thread");
  const isServed = command === "start" || command === "dev";
  const { resolution } = loaded;
  const warnings = isServed && file !== null ? await refuseOpenKeys(file.path, keysOf(resolution)) : [];
  return {
    ...loaded,
    config: await withOutsideSecrets({ ...loaded.config, signing }, variables),
    warnings: [...warnings, ...unmaskedSecrets(resolution)],
  };
}

/**
 * Reads only the settings by which a command reaches a node. It never throws for a mistake: an operator who names the
 * node must be able to stop it from a directory whose configuration is broken.
 */
export async function loadReach(request: Omit<ConfigRequest<"config">, "command" | "nodeId">): Promise<Reach> {
  const { workingDirectory, configPath, variables, flags = {} } = request;
  const from = (file: ConfigFile | null) => resolveReach({ command: "config", variables, flags, file });
  try {
    return from(await readConfigFile(workingDirectory, configPath));
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const { mistakes, ...reach } = from(null);
    return { ...reach, mistakes: [...error.mistakes, ...mistakes] };
  }
}

/** Secret keys of signers and callers, as a configuration file would contain them. */
function keysOf({ values }: Resolution): readonly string[] {
  const { privateKeys, mnemonic, apiKeys } = values;
  return [
    ...(privateKeys ?? []).map((key) => key.slice(2)),
    ...(mnemonic === null ? [] : [mnemonic]),
    ...(apiKeys ?? []).map(({ secret }) => secret),
  ];
}

/**
 * Adds secrets from files outside the configuration to the texts to mask. Secrets that only the signing process reads
 * are not added: this process never has them.
 */
export async function withOutsideSecrets<T extends Pick<Config, "signers" | "signing" | "secrets">>(
  config: T,
  variables: Variables,
): Promise<T> {
  const { signers, signing, secrets } = config;
  const read = signing === "process" ? {} : signers;
  return { ...config, secrets: [...secrets, ...(await outsideSecrets(read, variables))] };
}

/** Like `loadConfig`, but from a configuration object in memory (for the library). */
export function configFrom<C extends Command>(sources: Sources & { readonly command: C }, nodeId: string) {
  const resolution = resolve(sources);
  refuseImpossible(resolution);
  refuseMissing(sources, resolution);
  if (resolution.mistakes.lines.length > 0) throw new ConfigurationError(resolution.mistakes.lines);
  // The cast is safe: refuseMissing has checked everything that ConfigFor requires in addition to Config.
  return { config: buildConfig(resolution, nodeId) as ConfigFor<C>, resolution };
}
