/**
 * The command line put together: environment in, exit code out. Each command loads what it needs when it runs, so that
 * `--help` and `config` import neither database driver nor chain library; `config` asks endpoints for their chain's id.
 */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { CommandFailed, EXIT_CODES } from "../adapters/cli/failure.ts";
import type { KeyActions } from "../adapters/cli/keys.ts";
import type { CommandOptions } from "../adapters/cli/present.ts";
import { type CliActions, type CliIo, runCli, type ServeOptions } from "../adapters/cli/run-cli.ts";
import type { KeystoreSource } from "../adapters/evm/signers/keystore.ts";
import type { StoredKey } from "../adapters/evm/signers/keystore-files.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { type Environment, readEnvironment } from "../adapters/system/environment.ts";
import type { Logger } from "../adapters/system/logger.ts";
import { createMask } from "../domain/mask.ts";
import { USUAL_SCOPES } from "../domain/principal.ts";
import type { Failpoints } from "../ports/failpoints.ts";
import { type Command, type Config, ConfigurationError } from "./config/config.ts";
import type { ApiKey } from "./config/credentials.ts";
import { loadConfig } from "./config/load.ts";
import type { Resolution } from "./config/resolve.ts";
import { secretsOfVariables } from "./config/secrets.ts";
import { version } from "./version.ts";

const STANDARD_ERROR = 2;

/** Only a test gives a failpoint, to strike a node as it is shipped at one of its steps. */
export async function main(argv: readonly string[], failpoint?: Failpoints): Promise<number> {
  const output = createOutput();
  const environment = readEnvironment();
  output.hide(secretsOfVariables(environment.variables));
  return runCli(argv, createActions(environment, output, failpoint), output);
}

function createActions(environment: Environment, output: Output, failpoint?: Failpoints): CliActions {
  const { variables, workingDirectory } = environment;
  const load = async <C extends Command>(command: C, { port, config: configPath }: ServeOptions) => {
    const flags = port === undefined ? {} : { port };
    const request = { command, variables, workingDirectory, configPath, flags, nodeId: defaultNodeId(environment) };
    const loaded = await loadConfig(request).catch(explainMistakes);
    output.hide(loaded.config.secrets);
    return loaded;
  };
  return {
    async dev(options, ready) {
      const { config } = await load("dev", options);
      const logger = await createNodeLogger(config, process.stderr.isTTY && options.json !== true);
      const [{ dev }, { openTerminal }] = await Promise.all([import("./dev/dev.ts"), import("./dev/terminal.ts")]);
      const terminal = options.json === true ? null : openTerminal();
      const directory = resolve(workingDirectory, options.dataDir);
      const say = (line: string) => output.stderr(`${line}\n`);
      const needsKey = config.apiKeys !== "none";
      const request = { config, logger, chain: options.chain, directory, say, terminal, workingDirectory };
      await dev(request, (node) => ready({ ...node, needsKey })).finally(logger.flush);
    },
    async start(options, ready) {
      const { config } = await load("start", options);
      const logger = await createNodeLogger(config, false);
      const { reportReady, startWorkers, workerSlot } = await import("./workers.ts");
      const slot = workerSlot(variables);
      const count = Number(options.workers ?? 1);
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
    async demo(options) {
      const { demo } = await import("./dev/demo/demo.ts");
      const isTerminal = process.stdout.isTTY === true && options.json !== true;
      const write = options.json === true ? output.stderr : output.stdout;
      return demo(Number(options.transactions), { isTerminal, write });
    },
    async connect(options) {
      const { config } = await load("config", options);
      const { createClient } = await import("../client/index.ts");
      const { advertisedUrl, literalHost } = await import("./advertised-url.ts");
      // Operators find everything where they come in.
      const { host, port } = config.admin ?? config;
      const url = options.url ?? config.advertiseUrl ?? advertisedUrl(`http://${literalHost(host)}:${port}`);
      const apiKey = options.apiKey ?? mightiest(config.apiKeys)?.secret;
      output.hide(apiKey === undefined ? [] : [apiKey]);
      return createClient({ url, repeat: false, ...(apiKey !== undefined && { apiKey }) });
    },
    async migrate(options) {
      const { config } = await load("migrate", options);
      const { migrate } = await import("../adapters/postgres/migrate.ts");
      const { grant } = options;
      const { databaseUrl, databaseSchema: schema } = config;
      return migrate({ databaseUrl, schema, ...(grant === undefined ? {} : { grant }) });
    },
    async config(options) {
      const { config, resolution } = await load("config", options);
      await refuseBadPolicies(config);
      return showEffective(resolution);
    },
    ...createKeyActions(async (options) => keystoreOf((await load("config", options)).config)),
  };
}

async function showEffective(resolution: Resolution) {
  const { effectiveValues, saidIds } = await import("./config/effective.ts");
  return effectiveValues(resolution, await saidIds(resolution.chains));
}

/** What would keep a node from starting is told before one is started. */
async function refuseBadPolicies({ policies }: Config): Promise<void> {
  if (policies.file === null && policies.document === null) return;
  const { loadPolicies } = await import("./load-policies.ts");
  await loadPolicies({ policies }).catch(explainMistakes);
}

/** The one with the most scopes, the first of several: what an operator asks for takes more than what a caller does. */
function mightiest(keys: Config["apiKeys"]): ApiKey | undefined {
  const scopesOf = ({ scopes = USUAL_SCOPES }: ApiKey): number => scopes.length;
  return keys === "none" ? undefined : keys.toSorted((a, b) => scopesOf(b) - scopesOf(a))[0];
}

function createKeyActions(source: (options: CommandOptions) => Promise<KeystoreSource>): KeyActions {
  const files = () => import("../adapters/evm/signers/keystore-files.ts");
  const shown = async ({ address, file }: StoredKey) => {
    const { createCodec } = await import("../adapters/evm/codec.ts");
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
      const hex = options.from === "-" ? await text(process.stdin) : await readFile(options.from, "utf8");
      return shown(await importKey(into, hex, systemClock.now()));
    },
    async listKeys(options) {
      const { listKeys } = await files();
      return Promise.all((await listKeys(await source(options))).map(shown));
    },
  };
}

function keystoreOf({ signers: { keystore } }: Config): KeystoreSource {
  if (keystore !== null) return keystore;
  const variables = "FENCEPOST_KEYSTORE_DIR and FENCEPOST_KEYSTORE_PASSWORD_FILE";
  throw new CommandFailed([`${variables} must say where keys are, and under which password`], EXIT_CODES.misused);
}

/** Logs go to standard error: standard output carries the ready line and nothing else. */
async function createNodeLogger(config: Config, isReadable: boolean): Promise<Logger> {
  const { createLogger } = await import("../adapters/system/logger.ts");
  const format = isReadable ? "readable" : "json";
  const mask = createMask(config.secrets);
  return createLogger({ level: config.logLevel, format, destination: STANDARD_ERROR, mask });
}

function explainMistakes(error: unknown): never {
  if (!(error instanceof ConfigurationError)) throw error;
  throw new CommandFailed(error.mistakes, EXIT_CODES.misused, { cause: error });
}

const LONGEST_HOST_NAME = 64;

function defaultNodeId({ hostname, pid }: Environment): string {
  const host = hostname.replace(/[^\w.-]+/g, "-").slice(0, LONGEST_HOST_NAME);
  return `${host}-${pid}-${randomBytes(3).toString("hex")}`;
}

interface Output extends CliIo {
  /** From here on these texts are masked: an error may quote what it was given. */
  hide(secrets: readonly string[]): void;
}

function createOutput(): Output {
  let hidden: readonly string[] = [];
  let mask = createMask(hidden);
  // A reader that went away (`fencepost config | head -1`) is no error of ours.
  process.stdout.on("error", () => undefined);
  return {
    version,
    stdout: (text) => void process.stdout.write(text),
    stderr: (text) => void process.stderr.write(mask(text)),
    hide: (secrets) => {
      hidden = [...hidden, ...secrets];
      mask = createMask(hidden);
    },
  };
}
