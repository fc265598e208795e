import { refuseImpossible, refuseMissing } from "./combinations.ts";
import { buildConfig, type Command, type ConfigFor, ConfigurationError } from "./config.ts";
import { readConfigFile } from "./file.ts";
import { resolve } from "./resolve.ts";
import type { Flags, Sources } from "./sources.ts";

export interface ConfigRequest<C extends Command> {
  readonly command: C;
  readonly variables: Readonly<Record<string, string | undefined>>;
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
  return configFrom({ command, variables, flags, file }, nodeId);
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
