/** What every command shares that asks a running node. */
import { type Command, Option } from "commander";
import { FencepostApiError, type FencepostClient } from "../../client/index.ts";
import { CommandFailed } from "./failure.ts";

export interface RemoteOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
  /** Instead of the node that the configuration of this directory describes. */
  readonly url?: string;
  /** Instead of the first key of the configuration. */
  readonly apiKey?: string;
}

export interface RemoteActions {
  /** The node to ask. */
  connect(options: RemoteOptions): Promise<FencepostClient>;
}

export function addRemoteOptions(command: Command): Command {
  return command
    .addOption(new Option("--url <url>", "any node, instead of the one this configuration describes"))
    .addOption(new Option("--api-key <secret>", "instead of the first key of the configuration"));
}

/** One line that says what to do; the stack of a refusal does not help. */
export function explainRefusal(error: unknown): never {
  if (!(error instanceof FencepostApiError)) throw error;
  throw new CommandFailed([lineOf(error)], undefined, { cause: error });
}

function lineOf(error: FencepostApiError): string {
  if (error.code === "UNREACHABLE") return `${error.detail}: start a node, or name another with --url`;
  if (error.code === "UNAUTHENTICATED") {
    return "the node wants a key: run this where FENCEPOST_API_KEYS is set as it is for the node, or give --api-key";
  }
  return error.message;
}
