import { readFile } from "node:fs/promises";
import { refuseImpossible, refuseMissing } from "./combinations.ts";
import { buildConfig, type Command, type Config, type ConfigFor, ConfigurationError } from "./config.ts";
import { readConfigFile } from "./file.ts";
import { resolve } from "./resolve.ts";
import type { Flags, Sources } from "./sources.ts";

type Variables = Readonly<Record<string, string | undefined>>;

export interface ConfigRequest<C extends Command> {
  readonly command: C;
  readonly variables: Variables;
  readonly workingDirectory: string;
  /** The default of the setting `nodeId`. */
  readonly nodeId: string;
  /** Instead of looking in the working directory. */
  readonly configPath?: string | undefined;
  readonly flags?: Flags;
}

/** Reads file and environment; throws a ConfigurationError with every mistake there is. */
export async function loadConfig<C extends Command>(request: ConfigRequest<C>) {
  const file = await readConfigFile(request.workingDirectory, request.configPath);
  const { command, variables, flags = {}, nodeId } = request;
  const loaded = configFrom({ command, variables, flags, file }, nodeId);
  return { ...loaded, config: await withOutsideSecrets(loaded.config, variables) };
}

/** What the tools of key services read from the environment, and we for them. */
const TOKENS = ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "VAULT_TOKEN"];

/** What stands beside the configuration is as secret. A file that cannot be read is complained of by whoever needs it. */
export async function withOutsideSecrets<T extends Pick<Config, "signers" | "secrets">>(
  config: T,
  variables: Variables,
): Promise<T> {
  const { keystore, privateKeyFiles, remote } = config.signers;
  const files = [...privateKeyFiles, keystore?.passwordFile ?? null, remote?.keyFile ?? null];
  const texts = await Promise.all(files.map((file) => (file === null ? "" : readFile(file, "utf8").catch(() => ""))));
  const lines = texts.flatMap((text) => text.split("\n").map((line) => line.trim().replace(/^0x/i, "")));
  const secretLines = lines.filter((line) => !line.startsWith("-----"));
  return { ...config, secrets: [...config.secrets, ...secretLines, ...TOKENS.map((name) => variables[name] ?? "")] };
}

/** The same from a file's content at hand, as the library face has it. */
export function configFrom<C extends Command>(sources: Sources & { readonly command: C }, nodeId: string) {
  const resolution = resolve(sources);
  refuseImpossible(resolution);
  refuseMissing(sources.command, resolution);
  if (resolution.mistakes.lines.length > 0) throw new ConfigurationError(resolution.mistakes.lines);
  // refuseMissing has seen to what ConfigFor promises beyond Config. The resolution says where each value came from.
  return { config: buildConfig(resolution, nodeId) as ConfigFor<C>, resolution };
}
