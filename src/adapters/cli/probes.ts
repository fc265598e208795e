/** A node's pages outside the API: liveness, readiness, metrics and the OpenAPI document. */
import type { Command } from "commander";
import { print } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { addressed, count, explainRefusal, json, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { table } from "./table.ts";
import type { Paint } from "./terminal.ts";

export function addProbes(program: Command, ports: RemotePorts): void {
  const { io } = ports;
  const health = program.command("health").description("is the process of a node alive");
  probe(health, ports, ({ text }, inJson) => {
    const show = ({ status, version }: Health) => `${status}: version ${version}\n`;
    print(read<Health>(text), io, { json: inJson, show });
  });
  const ready = program.command("ready").description("should a node get traffic; exit code 1 if not");
  probe(ready, ports, ({ status, text }, inJson) => {
    print(read<Readiness>(text), io, { json: inJson, show: readinessTable });
    if (status !== 200) throw new CommandFailed(["the node is not ready"]);
  }).option("--chain-id <number>", "ready for this chain", count);
  const metrics = program.command("metrics").description("print a node's Prometheus metrics");
  probe(metrics, ports, ({ text }, inJson) => {
    print({ text }, io, { json: inJson, show: () => text });
  });
  const openapi = program.command("openapi").description("print the OpenAPI document of the API");
  probe(openapi, ports, ({ text }) => io.stdout(text.endsWith("\n") ? text : `${text}\n`)).option(
    "--html",
    "the reference to browse, instead",
  );
}

interface Health {
  readonly status: string;
  readonly version: string;
}

interface Readiness {
  readonly ready: boolean;
  readonly database: boolean;
  readonly draining: boolean;
  readonly chains: readonly {
    readonly chainId: number;
    readonly reachable: boolean;
    readonly head: number | null;
    readonly signersAway: number;
  }[];
}

const PATHS: Readonly<Record<string, (options: ProbeOptions) => string>> = {
  health: () => "/healthz",
  ready: ({ chainId }) => (chainId === undefined ? "/readyz" : `/readyz?chain=${chainId}`),
  metrics: () => "/metrics",
  openapi: ({ html }) => (html === true ? "/docs" : "/openapi.json"),
};

type ProbeOptions = RemoteOptions & { readonly chainId?: number; readonly html?: true };
type Page = Awaited<ReturnType<RemotePorts["actions"]["look"]>>;

/** "Not ready" is a result; any other refusal is reported as one. */
function probe(command: Command, { actions }: RemotePorts, show: (page: Page, inJson: boolean) => void): Command {
  command.action(async () => {
    const options = command.optsWithGlobals<ProbeOptions>();
    const path = PATHS[command.name()]?.(options) ?? "/";
    const page = await actions.look(options, path).catch(explainRefusal);
    show(page, options.json === true);
  });
  return addressed(command);
}

function read<T>(text: string): T {
  try {
    return json(text) as T;
  } catch (cause) {
    throw new CommandFailed(["the answer is not from a Fencepost node: is --url right?"], EXIT_CODES.failed, { cause });
  }
}

function readinessTable({ ready, database, draining, chains }: Readiness, paint: Paint): string {
  const facts = [
    ["ready", ready ? "yes" : "no"],
    ["database", database ? "reachable" : "not reachable"],
    ...(draining ? [["draining", "it is shutting down"]] : []),
    ...chains.map(({ chainId, reachable, head, signersAway }) => [
      `chain ${chainId}`,
      `${reachable ? `at block ${head ?? "-"}` : "not reachable"}${signersAway > 0 ? `, ${signersAway} signers away` : ""}`,
    ]),
  ];
  return table(facts, paint, (cell) => (/^no/.test(cell) ? "red" : null));
}
