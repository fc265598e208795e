/** What every command shares that asks a running node: whom, with which key, and what a refusal is told as. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { FencepostApiError, type FencepostClient } from "../../client/index.ts";
import { type Answer, type CommandOptions, tell } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import type { CliIo } from "./terminal.ts";

export interface RemoteOptions extends CommandOptions {
  /** Instead of the node that the configuration of this directory, or the profile in use, describes. */
  readonly url?: string;
  readonly apiKey?: string;
  /** A profile by its name. */
  readonly profile?: string;
}

export interface RemoteActions {
  /** The node to ask. */
  connect(options: RemoteOptions): Promise<FencepostClient>;
  /** What the same node has at a path beside the API: `/readyz`. */
  look(options: RemoteOptions, path: string): Promise<{ readonly status: number; readonly text: string }>;
}

export interface Asking {
  readonly actions: RemoteActions;
  readonly io: CliIo;
}

/** The options that say whom to ask. */
export function addressed(command: Command): Command {
  return command
    .addOption(new Option("--url <url>", "any node, instead of the one that configuration or profile name"))
    .addOption(new Option("--api-key <secret>", "instead of the configured key with the most scopes"))
    .addOption(new Option("--profile <name>", "the node and key that were kept under this name"));
}

/** A command that has a conversation with a running node. */
export function onNode<O extends RemoteOptions>(
  command: Command,
  { actions }: Asking,
  work: (client: FencepostClient, options: O) => Promise<void>,
): Command {
  command.action(async () => {
    const options = command.optsWithGlobals<O>();
    const client = await actions.connect(options);
    await work(client, options).catch(explainRefusal);
  });
  return addressed(command);
}

/** A command whose answer a running node gives. */
export function askNode<T>(command: Command, asking: Asking, { ask, ...how }: Answer<FencepostClient, T>): Command {
  return onNode(command, asking, async (client, { json: inJson }) => {
    tell(await ask(client), asking.io, { ...how, json: inJson === true });
  });
}

/** One line that says what to do; the stack of a refusal does not help. */
export function explainRefusal(error: unknown): never {
  if (!(error instanceof FencepostApiError)) throw error;
  throw new CommandFailed([lineOf(error)], exitCodeOf(error), { cause: error });
}

/** By what the client calls it: nobody answered, or not in time. */
const UNANSWERED: ReadonlySet<string> = new Set(["UNREACHABLE", "TIMEOUT"]);

export function isUnanswered({ code }: FencepostApiError): boolean {
  return UNANSWERED.has(code);
}

function exitCodeOf(error: FencepostApiError): number {
  const { code } = error;
  if (isUnanswered(error)) return EXIT_CODES.notReached;
  return code === "UNAVAILABLE" || code === "UNEXPECTED_ANSWER" ? EXIT_CODES.failed : EXIT_CODES.refused;
}

const ADVICE: Readonly<Partial<Record<FencepostApiError["code"], string>>> = {
  UNREACHABLE: "start a node, or name another with --url or --profile",
  UNEXPECTED_ANSWER: "is --url a node's? A proxy may have answered in its place",
  EPOCH_CHANGED: "the database's history changed; go on with --after resumeAfter and --epoch of the answer",
};

function lineOf(error: FencepostApiError): string {
  if (error.code === "UNREACHABLE") return `${error.detail}: ${ADVICE.UNREACHABLE}`;
  if (error.code === "UNAUTHENTICATED") {
    return "the node wants a key: run this where FENCEPOST_API_KEYS is set as it is for the node, or give --api-key or --profile";
  }
  const { path, resumeAfter, epoch } = error.problem ?? {};
  const place = path === undefined || error.detail.includes(path) ? "" : ` (${path})`;
  const position = resumeAfter === undefined ? "" : ` (resumeAfter ${resumeAfter}, epoch ${epoch ?? "as before"})`;
  const advice = ADVICE[error.code];
  return `${error.message}${place}${position}${advice === undefined ? "" : `: ${advice}`}`;
}

export function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError("It must be JSON.");
  }
}

/** A number that counts something: a chain's id, a nonce, a place in the feed. */
export function count(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number.");
}

const UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** `250ms`, `30s`, `5m`, `1h`; in milliseconds. */
export function duration(text: string): number {
  const [, number, unit] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(text) ?? [];
  if (number === undefined) throw new InvalidArgumentError("It must be a duration such as 30s, 5m or 1h.");
  return Number(number) * UNITS_MS[unit as keyof typeof UNITS_MS];
}

export const chainIdOption = (): Option =>
  new Option("--chain-id <number>", "where several chains are configured").argParser(count);
