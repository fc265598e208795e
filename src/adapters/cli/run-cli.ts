import { Command, CommanderError, Option } from "commander";
import { answerWith, type CommandOptions } from "./answer.ts";
import { addClusterCommands, addKillSwitch } from "./cluster.ts";
import { addCompletions, addExport } from "./completions.ts";
import { YES } from "./confirm.ts";
import { addCosts, addFigures } from "./costs.ts";
import { addDiagnostics, type DiagnosticActions } from "./diagnose.ts";
import { examplesOf } from "./examples.ts";
import { CommandFailed, describeFailure, describeWhole, EXIT_CODES, misused, UsageFailed } from "./failure.ts";
import { addKeys, type KeyActions } from "./keys.ts";
import { addNonces } from "./nonces.ts";
import { addOperating } from "./operate.ts";
import { addPolicy } from "./policy.ts";
import * as present from "./present.ts";
import { addProbes } from "./probes.ts";
import { addProfiles, type ProfileActions } from "./profiles.ts";
import { positive, type RemoteActions } from "./remote.ts";
import { addSend } from "./send.ts";
import { addCompletion } from "./shell-completion.ts";
import { inert } from "./shorten.ts";
import { addNotices, addSight } from "./sight.ts";
import { addSignatures } from "./signatures.ts";
import { addSigners } from "./signers.ts";
import type { CliIo } from "./terminal.ts";
import { addTransactions } from "./transactions.ts";
import { addWatch } from "./watch.ts";
import { addWebhooks } from "./webhooks.ts";
import { addAbis, addWhoami } from "./whoami.ts";

export interface ServeOptions extends CommandOptions {
  readonly port?: string;
}

export interface StartOptions extends ServeOptions {
  /** Start without a question, also if old rows will be deleted. */
  readonly yes?: boolean;
  /** Number of nodes to run on this machine behind one port. */
  readonly workers?: number;
}

export interface DemoOptions extends CommandOptions {
  readonly transactions: number;
}

export interface DevOptions extends ServeOptions {
  readonly chain: "embedded" | "anvil";
  /** Data directory of the embedded PostgreSQL. */
  readonly dataDir: string;
}

export interface MigrateOptions extends CommandOptions {
  readonly grant?: string;
  readonly afterRestore?: boolean;
}

/**
 * Implementations of the commands. `dev` and `start` call `ready` once the node is ready, and resolve when it has
 * stopped.
 */
export interface CliActions extends RemoteActions, KeyActions, ProfileActions, DiagnosticActions {
  dev(options: DevOptions, ready: (node: present.ReadyDevNode) => void): Promise<void>;
  start(options: StartOptions, ready: (node: present.ReadyNode) => void): Promise<void>;
  demo(options: DemoOptions): Promise<present.DemoReport>;
  migrate(options: MigrateOptions): Promise<{ readonly applied: readonly string[] }>;
  config(options: CommandOptions): Promise<readonly present.ConfigRow[]>;
}

/** Runs one command; resolves with the exit code and never rejects. */
export async function runCli(argv: readonly string[], actions: CliActions, io: CliIo): Promise<number> {
  const program = createProgram(actions, io);
  let path = program.name();
  program.hook("preAction", (_, running) => {
    path = pathOf(running);
    refuseShortened(running);
  });
  try {
    await program.parseAsync([...argv], { from: "user" });
    return EXIT_CODES.ok;
  } catch (error) {
    return report(error, io, { path, verbose: program.opts<CommandOptions>().verbose === true });
  }
}

export function createProgram(actions: CliActions, io: CliIo) {
  const program = new Command("fencepost")
    .description(
      "Sends EVM transactions from many nodes at once, each exactly once, and follows every one to finality.",
    )
    .version(io.version, "--version", "print the version")
    .option("--config <file>", "configuration file, instead of fencepost.config.ts in this directory")
    .option("--json", "print JSON")
    .option("--wide", "whole ids and times, also if they are wider than the terminal")
    .option("--verbose", "print the stack with an error")
    .configureHelp({ showGlobalOptions: true, minWidthToWrap: LEAST_HELP_COLUMN })
    .configureOutput({
      writeOut: io.stdout,
      writeErr: io.stderr,
      outputError: () => undefined,
      getOutHelpWidth: () => io.screen()?.columns ?? HELP_WIDTH,
      getErrHelpWidth: () => HELP_WIDTH,
    })
    .exitOverride();
  addInGroups(program, actions, io);
  for (const command of everyCommand(program)) complete(command);
  return program;
}

const HELP_WIDTH = 80;
/** Commander does not wrap a narrower column of descriptions: long names of sub-commands would leave none. */
const LEAST_HELP_COLUMN = 16;

function everyCommand(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

/** Adds a command's examples to its help, and its name to the errors of its arguments. */
function complete(command: Command) {
  const path = pathOf(command);
  const examples = examplesOf(path);
  if (examples.length > 0)
    command.addHelpText("after", `\nExamples:\n${examples.map((each) => `  ${each}\n`).join("")}`);
  command.exitOverride((error) => {
    throw Object.assign(error, { path });
  });
}

/** An id or address as a table shortens it: copied from there, it would be answered with "not found". */
const SHORTENED = /^(0x)?[0-9a-f-]{4,}…[0-9a-f-]{4,}$/i;

function refuseShortened(command: Command) {
  const given = [...command.args, ...Object.values(command.opts())];
  const shortened = given.find((each) => typeof each === "string" && SHORTENED.test(each));
  if (shortened !== undefined) throw misused(`${shortened} is shortened: list it with --wide, and copy it whole`);
}

/** `fencepost keys api new` */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Adds the commands in groups, because a help text with one list of forty commands is unreadable. */
function addInGroups(program: Command, actions: CliActions, io: CliIo) {
  const ports = { actions, io };
  program.commandsGroup("Run nodes:");
  addServing(program, actions, io);
  addOneShot(program, actions, io);
  program.commandsGroup("Set up and check:");
  addDiagnostics(program, ports);
  addKeys(program, ports);
  addProfiles(program, ports);
  addWhoami(program, ports);
  addCompletion(program, io);
  program.commandsGroup("Send and follow:");
  addSend(program, ports);
  addTransactions(program, ports);
  addWatch(program, ports);
  addCompletions(program, ports);
  addExport(program, ports);
  addWebhooks(program, ports);
  addNonces(program, ports);
  addSignatures(program, ports);
  program.commandsGroup("Act on a transaction:");
  addOperating(program, ports);
  program.commandsGroup("See everything at once:");
  addSight(program, ports);
  addNotices(program, ports);
  addCosts(program, ports);
  addFigures(program, ports);
  program.commandsGroup("Signers, policies and nodes:");
  addSigners(program, ports);
  addPolicy(program, ports);
  addAbis(program, ports);
  addClusterCommands(program, ports);
  addKillSwitch(program, ports);
  addProbes(program, ports);
}

function addServing(program: Command, actions: CliActions, io: CliIo) {
  const dev = program
    .command("dev")
    .description("run a node with its own PostgreSQL, chain and test accounts; nothing to configure")
    .option("--port <number>", "port to listen on")
    .addOption(new Option("--chain <kind>", "which chain").choices(["embedded", "anvil"]).default("embedded"))
    .option("--data-dir <path>", "where its database lives", ".fencepost")
    .action(() => {
      const options = dev.optsWithGlobals<DevOptions>();
      const shown = options.json ? present.readyLine : present.devWelcome;
      return actions.dev(options, (node) => io.stdout(shown(node)));
    });
  const start = program
    .command("start")
    .description("run a node on a given database, chain and signer; prints one JSON line when it is ready")
    .option("--port <number>", "port to listen on")
    .option("--workers <number>", "nodes on this machine behind one port", positive)
    .addOption(YES)
    .action(() => actions.start(start.optsWithGlobals(), (node) => io.stdout(present.readyLine(node))));
}

function addOneShot(program: Command, actions: CliActions, io: CliIo) {
  const demo = program
    .command("demo")
    .description(
      "show one failover in half a minute: three nodes, of which one is killed and one frozen in the middle of a thousand transfers (chaos repeats faults)",
    );
  answerWith(demo, io, {
    ask: actions.demo,
    doing: null,
    show: present.demoTable,
    judge: ({ lost, duplicate, gaps }) => {
      if (lost + duplicate + gaps > 0) throw new CommandFailed(["the demonstration failed"]);
    },
  }).option("--transactions <number>", "how many transfers", positive, 1_000);
  answerWith(program.command("migrate").description("bring the database's schema up to this version"), io, {
    doing: "migrating the database",
    ask: async (options: MigrateOptions) => {
      const { applied } = await actions.migrate(options);
      return { applied, ...(options.afterRestore && { afterRestore: true }) };
    },
    show: present.migrationReport,
  })
    .option("--grant <role>", "let this role run nodes on it, without the right to change a table")
    .option("--after-restore", "the database comes from a backup: every lane waits until an operator resumes it");
  const config = program
    .command("config")
    .description("print the effective configuration and where each value comes from; secrets are masked");
  answerWith(config, io, {
    ask: actions.config,
    show: present.configTable,
    doing: "asking the endpoints for their chain ids",
  });
}

function report(error: unknown, io: CliIo, { path, verbose }: { readonly path: string; readonly verbose: boolean }) {
  if (error instanceof CommanderError) return reportUsage(error, io);
  if (error instanceof CommandFailed) {
    const help = error instanceof UsageFailed ? `; see ${path} --help` : "";
    // A line may quote another server's answer, with line breaks and sequences that move the terminal's cursor.
    for (const line of error.lines) io.stderr(`fencepost: ${inert(line).trim()}${help}\n`);
    if (verbose && error.cause !== undefined) io.stderr(`${describeWhole(error.cause)}\n`);
    return error.exitCode;
  }
  io.stderr(`fencepost: ${verbose ? describeWhole(error) : describeFailure(error)}\n`);
  return EXIT_CODES.failed;
}

/**
 * Reports an error of Commander. Commander also throws for `--help` and `--version`, and its messages may have two
 * lines.
 */
function reportUsage(error: CommanderError & { readonly path?: string }, io: CliIo): number {
  if (error.exitCode === 0) return EXIT_CODES.ok;
  // For `commander.help`, Commander has already printed the help.
  if (error.code !== "commander.help") {
    const line = error.message.replace(/^error: |\.$/g, "").replace(/\s*\n\s*/g, " ");
    const isAhead = error.code === "commander.unknownOption" && (error.path ?? "fencepost") === "fencepost";
    const order = isAhead ? ": options of a command come after its name" : "";
    io.stderr(`fencepost: ${line}${order}; see ${error.path ?? "fencepost"} --help\n`);
  }
  return EXIT_CODES.misused;
}
