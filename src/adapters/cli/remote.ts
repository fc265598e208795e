/** Shared by all commands that call a node: the node's URL, the API key, and the text shown for a refusal. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { FencepostApiError, type FencepostClient, type Hex } from "../../client/index.ts";
import { answerWith, type CommandOptions, during, type Shown } from "./answer.ts";
import { confirm, YES } from "./confirm.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import type { CliIo } from "./terminal.ts";
import { causeCode, unreachableLine, whyUnreachable } from "./unreachable.ts";

export interface RemoteOptions extends CommandOptions {
  /** URL of the node to call; overrides the configuration and the current profile. */
  readonly url?: string;
  readonly apiKey?: string;
  /** Name of the profile to use. */
  readonly profile?: string;
}

export interface Chosen {
  readonly url: string;
  /** Source of the key that was sent; null: none was sent. */
  readonly keyFrom: string | null;
  /** Mistakes in the configuration that were ignored, and that may be the reason why no key was sent. */
  readonly ignored: readonly string[];
}

export interface RemoteActions {
  /** Creates a client of the chosen node. */
  connect(options: RemoteOptions): Promise<FencepostClient>;
  /** Sends a GET to a path of the chosen node outside the API, such as `/readyz`. */
  look(options: RemoteOptions, path: string): Promise<{ readonly status: number; readonly text: string }>;
  /** The chosen node, and the key that was sent to it. */
  chosen(options: RemoteOptions): Promise<Chosen>;
  /** True if an HTTP server answers at this URL, with any status and any certificate. */
  answers(url: string): Promise<boolean>;
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
    await work(client, options).catch((error) => explainRefusal(error, actions, options));
  });
  return addressed(command);
}

interface Asked<O, T> extends Shown<T> {
  readonly ask: (client: FencepostClient, options: O, ...args: Hex[]) => Promise<T>;
  /** The question to confirm on a terminal before the call; null: none. Adds the option `--yes`. */
  readonly question?: (client: FencepostClient, options: O, ...args: Hex[]) => Promise<string | null>;
}

/**
 * Makes a command that prints the result of one call to a node. `ask` receives the options without those that choose
 * the node. Arguments have the type of addresses and hashes, although the command line checks nothing: the node does.
 */
export function askNode<O extends object, T>(
  command: Command,
  { actions, io }: RemotePorts,
  { ask, question, ...how }: Asked<O, T>,
): Command {
  const asking = async (options: RemoteOptions, ...args: string[]) => {
    const client = await actions.connect(options);
    const { url: _, apiKey: __, profile: ___, yes, ...own } = command.opts();
    const calls = async () => {
      const waitFor = <R>(work: () => Promise<R>) => during(io, "waiting for the node", work);
      if (question !== undefined && !yes && io.ask !== null)
        await confirm(io, await waitFor(() => question(client, own as O, ...(args as Hex[]))));
      return waitFor(() => ask(client, own as O, ...(args as Hex[])));
    };
    return calls().catch((error) => explainRefusal(error, actions, options));
  };
  if (question !== undefined) command.addOption(YES);
  return addressed(answerWith(command, io, { ask: asking, doing: null, ...how }));
}

/**
 * Turns a node's refusal into one line with advice, without a stack trace. If no node answered, it finds out which part
 * of the address is wrong.
 */
export async function explainRefusal(error: unknown, actions: RemoteActions, options: RemoteOptions): Promise<never> {
  if (!(error instanceof FencepostApiError)) throw error;
  throw new CommandFailed(await linesOf(error, actions, options), exitCodeOf(error), { cause: error });
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
  UNEXPECTED_ANSWER: "is --url a node's? A proxy may have answered instead",
  EPOCH_CHANGED: "the database's history changed; continue with --after resumeAfter and --epoch of the answer",
};

async function linesOf(error: FencepostApiError, actions: RemoteActions, options: RemoteOptions) {
  const chosen = await actions.chosen(options);
  if (error.code === "UNAUTHENTICATED") return [unauthenticatedLine(chosen), ...chosen.ignored];
  const why = await whyUnreachable(error, chosen.url, actions.answers);
  return [why === null ? refusalLine(error) : unreachableLine(why, chosen.url, causeCode(error))];
}

function refusalLine(error: FencepostApiError) {
  const { path, resumeAfter, epoch } = error.problem ?? {};
  const place = path === undefined || error.detail.includes(path) ? "" : ` (${path})`;
  const position = resumeAfter === undefined ? "" : ` (resumeAfter ${resumeAfter}, epoch ${epoch ?? "as before"})`;
  const advice = ADVICE[error.code];
  return `${error.message}${place}${position}${advice === undefined ? "" : `: ${advice}`}`;
}

/** A node answers 401 both to a missing and to a wrong key: only the sender knows which it was. */
function unauthenticatedLine({ url, keyFrom }: Chosen) {
  return keyFrom === null
    ? `${url} requires a key, and none was sent: give --api-key or --profile, or run this where FENCEPOST_API_KEYS is set as it is for the node`
    : `${url} does not accept the key of ${keyFrom}: it was mistyped or revoked, or belongs to another node`;
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

export const CHAIN_ID = new Option("--chain-id <number>", "if several chains are configured").argParser(count);
