/**
 * Connects the parts of the command line: environment in, exit code out. Each command imports its modules when it runs,
 * so `--help` and `config` load neither the database driver nor a chain library. `config` requests the chain ids of the
 * endpoints.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { type CommandOptions, during } from "../adapters/cli/answer.ts";
import type { DiagnosticActions } from "../adapters/cli/diagnose.ts";
import { CommandFailed, EXIT_CODES } from "../adapters/cli/failure.ts";
import type { KeyActions } from "../adapters/cli/keys.ts";
import { type CliActions, runCli, type ServeOptions } from "../adapters/cli/run-cli.ts";
import type { KeystoreSource, StoredKey } from "../adapters/evm/signers/keystore.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { type Environment, readEnvironment } from "../adapters/system/environment.ts";
import { createMask } from "../domain/text/mask.ts";
import type { Failpoints } from "../ports/failpoints.ts";
import { type Command, type Config, type ConfigFor, ConfigurationError } from "./config/config.ts";
import { loadConfig, loadReach } from "./config/load.ts";
import { secretsOfVariables } from "./config/secrets.ts";
import { confirmRetention } from "./confirm-retention.ts";
import { createOutput, type ProcessOutput, screenOf } from "./process-output.ts";
import { misuse } from "./remote/misuse.ts";
import { remoteActions } from "./remote/node-to-ask.ts";
import { profileFileOf, profilesIn } from "./remote/profile-file.ts";

const STANDARD_ERROR = 2;

/** `failpoint` is for tests that crash the shipped process at a given step. */
export async function main(argv: readonly string[], failpoint?: Failpoints): Promise<number> {
  const environment = readEnvironment();
  const output = createOutput(environment);
  output.hide(secretsOfVariables(environment.variables));
  return runCli(argv, createActions(environment, output, failpoint), output);
}

function createActions(environment: Environment, output: ProcessOutput, failpoint?: Failpoints): CliActions {
  const { variables, workingDirectory } = environment;
  const loadRaw = async <C extends Command>(command: C, { port, config: configPath }: ServeOptions) => {
    const flags = port === undefined ? {} : { port };
    const request = { command, variables, workingDirectory, configPath, flags, nodeId: defaultNodeId(environment) };
    const loaded = await loadConfig(request);
    output.hide(loaded.config.secrets);
    return loaded;
  };
  const load = <C extends Command>(command: C, options: ServeOptions) =>
    loadRaw(command, options).catch(explainMistakes);
  const loadWithLogger = async <C extends "dev" | "start">(command: C, options: ServeOptions) => {
    const { config, warnings } = await load(command, options);
    const logger = await createNodeLogger(config, options, variables);
    for (const line of warnings) logger.log("warn", {}, line);
    return { config, logger };
  };
  const profiles = profilesIn(profileFileOf(environment));
  const reach = ({ config: configPath }: CommandOptions) => loadReach({ variables, workingDirectory, configPath });
  const remote = remoteActions({ load: reach, ...profiles }, output.hide);
  return {
    async dev(options, ready) {
      const { config, logger } = await loadWithLogger("dev", options);
      const [{ dev }, { openTerminal }] = await Promise.all([import("./dev/dev.ts"), import("./dev/terminal.ts")]);
      const terminal = options.json === true ? null : openTerminal();
      const directory = resolve(workingDirectory, options.dataDir);
      const needsKey = config.apiKeys !== "none";
      const { say, busy } = output;
      const request = { config, logger, chain: options.chain, directory, say, busy, terminal, workingDirectory };
      await dev(request, (node) => ready({ ...node, needsKey })).finally(logger.flush);
    },
    async start(options, ready) {
      const { config, logger } = await loadWithLogger("start", options);
      const { reportReady, startWorkers, workerSlot } = await import("./workers.ts");
      const slot = workerSlot(variables);
      // Workers ask nothing: their parent has asked, and they share its terminal.
      if (slot === null && options.yes !== true)
        await confirmRetention(config, output, () => during(output, "reading the database", () => examine(config)));
      const count = options.workers ?? 1;
      if (slot === null && count > 1) {
        const { drainTimeoutMs, nodeId } = config;
        const request = { count, nodeId, argv: process.argv.slice(2), logger, drainTimeoutMs };
        return startWorkers(request, ready).finally(logger.flush);
      }
      const { start } = await import("./start.ts");
      const named = slot === null ? config : { ...config, nodeId: `${config.nodeId}-${slot}` };
      const request = { config: named, logger, sharesPort: slot !== null, ...(failpoint && { failpoint }) };
      const say = slot === null ? ready : reportReady;
      await start(request, ({ url, adminUrl, nodeId }) => say({ url, adminUrl, nodeId })).finally(logger.flush);
    },
    async migrate({ grant, afterRestore = false, ...options }) {
      const { databaseUrl, databaseSchema: schema } = (await load("migrate", options)).config;
      const { migrate } = await import("../adapters/postgres/schema/migrate.ts");
      return migrate({ databaseUrl, schema, afterRestore, ...(grant !== undefined && { grant }) });
    },
    async config(options) {
      const { config, resolution } = await load("config", options);
      await refuseBadPolicies(config);
      const { effectiveValues, reportedIds } = await import("./config/effective.ts");
      return effectiveValues(resolution, await reportedIds(resolution.chains));
    },
    ...profiles,
    ...remote,
    ...createDiagnostics(environment, output, {
      connect: remote.connect,
      load: async (command, options) => (await loadRaw(command, options)).config,
    }),
    ...createKeyActions(output, async (options) => keystoreOf((await load("config", options)).config)),
  };
}

async function examine({ databaseUrl, databaseSchema: schema }: ConfigFor<"start">) {
  const { examineDatabase } = await import("../adapters/postgres/schema/examine.ts");
  return examineDatabase({ databaseUrl, schema, clock: systemClock });
}

/** Reports mistakes in the policy document that would prevent a start. */
async function refuseBadPolicies({ policies }: Config) {
  if (policies.file === null && policies.document === null) return;
  const { loadPolicies } = await import("./node/load-policies.ts");
  await loadPolicies({ policies }).catch(explainMistakes);
}

function createDiagnostics(
  { workingDirectory }: Environment,
  output: ProcessOutput,
  {
    connect,
    load,
  }: Pick<CliActions, "connect"> & { load(command: "start" | "config", options: CommandOptions): Promise<Config> },
): DiagnosticActions & Pick<CliActions, "demo"> {
  return {
    async demo(options) {
      const { demo } = await import("./dev/demo/demo.ts");
      return demo(options.transactions, output);
    },
    async doctor(options) {
      const { doctor } = await import("./doctor/doctor.ts");
      return doctor((command) => load(command, options));
    },
    async bench(options) {
      const [{ bench }, { createProgress }] = await Promise.all([
        import("./dev/demo/bench.ts"),
        import("./dev/demo/progress.ts"),
      ]);
      const shown = createProgress(options.transactions, output);
      return bench(options, { connect: () => connect(options), progress: shown, newId: randomUUID });
    },
    async chaos(options) {
      const { campaign } = await import("./dev/chaos/campaign.ts");
      return campaign(options, output);
    },
    async init({ config }) {
      const { writeConfig } = await import("./remote/write-config.ts");
      return writeConfig(workingDirectory, config);
    },
  };
}

function createKeyActions(
  { read }: ProcessOutput,
  source: (options: CommandOptions) => Promise<KeystoreSource>,
): KeyActions {
  const files = () => import("../adapters/evm/signers/keystore.ts");
  const shown = async ({ address, file }: StoredKey) => {
    const { createCodec } = await import("../adapters/evm/codec/codec.ts");
    return { address: address === null ? null : createCodec().checksum(address), file };
  };
  return {
    async newKey(options) {
      const { newKey } = await files();
      return shown(await newKey(await source(options), systemClock.now()));
    },
    async importKey(options) {
      const { importKey } = await files();
      const into = await source(options);
      return shown(await importKey(into, await read(options.from), systemClock.now()));
    },
    async listKeyFiles(options) {
      const { listKeyFiles } = await files();
      return Promise.all((await listKeyFiles(await source(options))).map(shown));
    },
  };
}

function keystoreOf({ signers: { keystore } }: Config): KeystoreSource {
  if (keystore !== null) return keystore;
  const variables = "FENCEPOST_KEYSTORE_DIR and FENCEPOST_KEYSTORE_PASSWORD_FILE";
  throw misuse(`${variables} must name the directory of the keys and the file of their password`);
}

type Variables = Environment["variables"];

/**
 * Logger of a node. Logs go to standard error, because standard output carries the ready line only. They are readable
 * on a terminal, and JSON elsewhere or with `--json`.
 */
async function createNodeLogger(config: Config, { json }: ServeOptions, variables: Variables) {
  const { createLogger } = await import("../adapters/system/logger.ts");
  const screen = json === true ? null : screenOf(process.stderr, variables);
  const form = screen === null ? { format: "json" as const } : { format: "readable" as const, colours: screen.colours };
  const mask = createMask(config.secrets);
  return createLogger({ level: config.logLevel, ...form, destination: STANDARD_ERROR, mask });
}

function explainMistakes(error: unknown): never {
  if (!(error instanceof ConfigurationError)) throw error;
  throw new CommandFailed(error.mistakes, EXIT_CODES.misused, { cause: error });
}

const LONGEST_HOST_NAME = 64;

function defaultNodeId({ hostname, pid }: Environment) {
  const host = hostname.replace(/[^\w.-]+/g, "-").slice(0, LONGEST_HOST_NAME);
  return `${host}-${pid}-${randomBytes(3).toString("hex")}`;
}
