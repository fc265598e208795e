/** What a node has beside its API: is it alive, is it ready, its metrics, and the description of the API itself. */
import { type Command, Option } from "commander";
import { tell } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { type Asking, addressed, count, explainRefusal, json, type RemoteOptions } from "./remote.ts";
import { table } from "./table.ts";
import type { Paint } from "./terminal.ts";

export function addProbes(program: Command, asking: Asking): void {
  const { io } = asking;
  const health = program.command("health").description("is the process of a node alive");
  probe(health, asking, ({ text }, inJson) => {
    const show = ({ status, version }: Health) => `${status}: version ${version}\n`;
    tell(read<Health>(text), io, { json: inJson, show });
  });
  const ready = program.command("ready").description("should a node get traffic; exit code 1 where it should not");
  probe(ready, asking, ({ status, text }, inJson) => {
    tell(read<Readiness>(text), io, { json: inJson, show: readinessInWords });
    if (status !== 200) throw new CommandFailed(["the node is not ready"]);
  }).addOption(new Option("--chain-id <number>", "ready for this chain").argParser(count));
  const metrics = program.command("metrics").description("print a node's Prometheus metrics");
  probe(metrics, asking, ({ text }, inJson) => {
    tell({ text }, io, { json: inJson, show: () => text });
  });
  const openapi = program.command("openapi").description("print the OpenAPI document of the API");
  probe(openapi, asking, ({ text }) => io.stdout(text.endsWith("\n") ? text : `${text}\n`)).addOption(
    new Option("--html", "the reference to browse, instead"),
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
type Page = Awaited<ReturnType<Asking["actions"]["look"]>>;

/** Not ready is an answer; whatever else is refused is told as any refusal. */
function probe(command: Command, { actions }: Asking, show: (page: Page, inJson: boolean) => void): Command {
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
    throw new CommandFailed(["that is no node's answer: is --url right?"], EXIT_CODES.failed, { cause });
  }
}

function readinessInWords({ ready, database, draining, chains }: Readiness, paint: Paint): string {
  const facts = [
    ["ready", ready ? "yes" : "no"],
    ["database", database ? "reachable" : "not reachable"],
    ...(draining ? [["draining", "it is on its way out"]] : []),
    ...chains.map(({ chainId, reachable, head, signersAway }) => [
      `chain ${chainId}`,
      `${reachable ? `at block ${head ?? "-"}` : "not reachable"}${signersAway > 0 ? `, ${signersAway} signers away` : ""}`,
    ]),
  ];
  return table(facts, paint, (cell) => (/^no/.test(cell) ? "red" : null));
}
