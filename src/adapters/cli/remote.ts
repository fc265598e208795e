/** Shared by all commands that call a node: the node's URL, the API key, and the text shown for a refusal. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { FencepostApiError, type FencepostClient, type Hex } from "../../client/index.ts";
import { answerWith, type CommandOptions, type Shown } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import type { CliIo } from "./terminal.ts";

export interface RemoteOptions extends CommandOptions {
  /** URL of the node to call; overrides the configuration and the current profile. */
  readonly url?: string;
  readonly apiKey?: string;
  /** Name of the profile to use. */
  readonly profile?: string;
}

export interface RemoteActions {
  /** Creates a client of the chosen node. */
  connect(options: RemoteOptions): Promise<FencepostClient>;
  /** Sends a GET to a path of the chosen node outside the API, such as `/readyz`. */
  look(options: RemoteOptions, path: string): Promise<{ readonly status: number; readonly text: string }>;
}

export interface RemotePorts {
  readonly actions: RemoteActions;
  readonly io: CliIo;
}

/** Adds to a command the options that choose the node. */
export function addressed(command: Command): Command {
  return command
    .option("--url <url>", "any node, instead of the one that configuration or profile name")
    .option("--api-key <secret>", "instead of the configured key with the most scopes")
    .option("--profile <name>", "the node and key stored under this name");
}

/** Makes a command that calls a node several times. */
export function onNode<O extends RemoteOptions>(
  command: Command,
  { actions }: RemotePorts,
  work: (client: FencepostClient, options: O) => Promise<void>,
): Command {
  command.action(async () => {
    const options = command.optsWithGlobals<O>();
    const client = await actions.connect(options);
    await work(client, options).catch(explainRefusal);
  });
  return addressed(command);
}

/**
 * Makes a command that prints the result of one call to a node. `ask` receives the options without those that choose
 * the node. Arguments have the type of addresses and hashes, although the command line checks nothing: the node does.
 */
export function askNode<O extends object, T>(
  command: Command,
  { actions, io }: RemotePorts,
  {
    ask,
    ...how
  }: Shown<T> & {
    readonly ask: (client: FencepostClient, options: O, ...args: Hex[]) => Promise<T>;
  },
): Command {
  const asking = async (options: RemoteOptions, ...args: string[]) => {
    const client = await actions.connect(options);
    const { url: _, apiKey: __, profile: ___, ...own } = command.opts();
    return ask(client, own as O, ...(args as Hex[])).catch(explainRefusal);
  };
  return addressed(answerWith(command, io, { ask: asking, ...how }));
}

/** Turns a node's refusal into one line with advice, without a stack trace. */
export function explainRefusal(error: unknown): never {
  if (!(error instanceof FencepostApiError)) throw error;
  throw new CommandFailed([lineOf(error)], exitCodeOf(error), { cause: error });
}

/** Error codes of the client that mean that no node answered. */
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
  UNEXPECTED_ANSWER: "is --url a node's? A proxy may have answered instead",
  EPOCH_CHANGED: "the database's history changed; continue with --after resumeAfter and --epoch of the answer",
};

function lineOf(error: FencepostApiError) {
  if (error.code === "UNREACHABLE") return `${error.detail}: ${ADVICE.UNREACHABLE}`;
  if (error.code === "UNAUTHENTICATED") {
    return "the node requires a key: run this where FENCEPOST_API_KEYS is set as it is for the node, or give --api-key or --profile";
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
    throw new InvalidArgumentError("The value must be JSON.");
  }
}

/** Parses a whole number from 0 on, such as a chain id, a nonce or a position in the feed. */
export function count(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("The value must be a whole number.");
}

/** Parses a whole number from 1 on. */
export function positive(text: string): number {
  if (!/^[1-9][0-9]{0,5}$/.test(text)) throw new InvalidArgumentError("The value must be a whole number from 1 on.");
  return Number(text);
}

const UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** Parses `250ms`, `30s`, `5m` or `1h` to milliseconds. */
export function duration(text: string): number {
  const [, number, unit] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(text) ?? [];
  if (number === undefined) throw new InvalidArgumentError("The value must be a duration such as 30s, 5m or 1h.");
  return Number(number) * UNITS_MS[unit as keyof typeof UNITS_MS];
}

/** Parses a day, which begins at midnight UTC, or an instant with its offset. */
export function instant(text: string): string {
  const whole = /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text;
  const isInstant = /^\d{4}-\d{2}-\d{2}T.*(Z|[+-]\d{2}:\d{2})$/.test(whole) && !Number.isNaN(Date.parse(whole));
  if (!isInstant) throw new InvalidArgumentError("The value must be a day such as 2026-01-31 or 2026-01-31T12:00:00Z.");
  return whole;
}

export const CHAIN_ID = new Option("--chain-id <number>", "where several chains are configured").argParser(count);
